"""Users of one proxy over HTTP, whose server has other tools for each: nobody finds or calls those of another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from http_proxy import ANN, BOB, Listening
from mcp import Client

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
SERVER = Path(__file__).parents[1] / "listed_server.py"


async def ask(client: Client, tool: str, **args: Any) -> str:
    return "\n".join(each.text for each in (await client.call_tool(tool, args)).content if each.type == "text")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.promise("nobody-elses")
async def test_nobody_finds_the_tools_of_another(tmp_path: Path, mode: str) -> None:
    def serve(*names: str) -> None:
        """To whoever connects next."""
        listed = [{"name": name, "description": f"Reads the {name} book.", "inputSchema": {"type": "object"}} for name in names]
        (tmp_path / "tools.json").write_text(json.dumps(listed))

    serve("of_ann", "of_all", "pinned_of_ann")
    options = ("--tool-search", "on", "--pin", "pinned_of_ann")
    proxy = Listening(tmp_path, *options, server=(SERVER, tmp_path / "tools.json"))
    try:
        async with proxy.client(ANN, mode) as ann:
            assert "pinned_of_ann" in [each.name for each in (await ann.list_tools()).tools]
            assert "of_ann(" in await ask(ann, "find_tools", query="read a book")
            serve("of_bob", "of_all")
            async with proxy.client(BOB, mode) as bob:
                assert "pinned_of_ann" not in [each.name for each in (await bob.list_tools()).tools]
                found = await ask(bob, "find_tools", query="read a book of ann")
                assert ("of_bob(" in found, "of_all(" in found, "of_ann" in found) == (True, True, False)
                for name in ("of_ann", "pinned_of_ann"):
                    assert f"There is no tool '{name}'" in await ask(bob, "call_tool", name=name, arguments={})
                    assert f"There is no tool '{name}'" in await ask(bob, "describe_tools", names=[name])
                found = await ask(ann, "find_tools", query="read a book of bob")
                assert ("of_ann(" in found, "of_bob" in found) == (True, False)
                assert "There is no tool 'of_bob'" in await ask(ann, "describe_tools", names=["of_bob"])
    finally:
        proxy.end()
