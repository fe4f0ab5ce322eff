"""Resources and prompts of a reference server that are over the limits, read by real clients: nothing of them is lost."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import mcp_types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from official import Node
from running import Overspill, plain_environ

pytestmark = pytest.mark.slow

URI = "demo://resource/static/document/features.md"
CLIENTS = Path(__file__).parent / "clients"
LIMIT = 1000
LOW = ("--set", f"toolResponseMaxBytes={LIMIT}")


async def said(command: Sequence[str], environ: dict[str, str]) -> Any:
    with anyio.fail_after(120):
        done = await anyio.run_process(command, env=environ, check=False, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def client(command: Sequence[str], environ: dict[str, str], **options: Any) -> Client:
    return Client(stdio_client(StdioServerParameters(command=command[0], args=list(command[1:]), env=environ)), **options)


def text_of(content: mcp_types.TextResourceContents | mcp_types.BlobResourceContents) -> str:
    assert isinstance(content, mcp_types.TextResourceContents)
    return content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_reads_all_parts_of_a_resource(node: Node, mode: Any, tmp_path: Path) -> None:
    overspill, server = Overspill(tmp_path), node.everything()
    with anyio.fail_after(120):
        async with client(server, plain_environ(), mode=mode) as direct:
            whole = text_of((await direct.read_resource(URI)).contents[0])
        async with client(overspill.proxy(*LOW, "--", *server), overspill.environ, mode=mode) as through:
            assert [each.uri for each in (await through.list_resources()).resources if each.uri == URI] == [URI]
            parts, uri = list[str](), URI
            while uri:
                part, *more = (await through.read_resource(uri)).contents
                assert part.uri == uri
                parts.append(text_of(part))
                uri = more[0].uri if more else ""
    assert len(whole) > 3 * LIMIT
    assert max(len(part.encode()) for part in parts) <= LIMIT
    assert "".join(parts) == whole


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_follows_the_link_in_a_prompt(node: Node, mode: Any, tmp_path: Path) -> None:
    """The prompt embeds a small resource, so the limit is lower still."""
    overspill, server, asked = Overspill(tmp_path), node.everything(), {"resourceType": "Text", "resourceId": "1"}
    with anyio.fail_after(120):
        async with client(server, plain_environ(), mode=mode) as direct:
            messages = (await direct.get_prompt("resource-prompt", asked)).messages
        proxy = overspill.proxy("--set", "toolResponseMaxBytes=20", "--", *server)
        async with client(proxy, overspill.environ, mode=mode) as through:
            linked = (await through.get_prompt("resource-prompt", asked)).messages
            (link,) = [each.content for each in linked if isinstance(each.content, mcp_types.ResourceLink)]
            parts, uri = list[str](), link.uri
            while uri:
                part, *more = (await through.read_resource(uri)).contents
                parts.append(text_of(part))
                uri = more[0].uri if more else ""
    (embedded,) = [each.content for each in messages if isinstance(each.content, mcp_types.EmbeddedResource)]
    assert [type(each.content) for each in messages] == [mcp_types.TextContent, mcp_types.EmbeddedResource]
    assert linked[0] == messages[0]
    # The resource has the time in it.
    assert "".join(parts).partition(" created at")[0] == text_of(embedded.resource).partition(" created at")[0]


async def test_a_client_of_fastmcp_reads_all_parts(node: Node, python: Callable[[str], Path], tmp_path: Path) -> None:
    reader = [str(python("pydantic-ai") / "python"), str(CLIENTS / "fastmcp_reader.py"), URI]
    overspill, server = Overspill(tmp_path), node.everything()
    (whole,) = await said([*reader, *server], plain_environ())
    parts = await said([*reader, *overspill.proxy(*LOW, "--", *server)], overspill.environ)
    assert len(parts) > 3
    assert "".join(parts) == whole


async def test_the_inspector_shows_a_person_the_whole_resource(node: Node, inspector: list[str], tmp_path: Path) -> None:
    overspill, server = Overspill(tmp_path), node.everything()
    through = overspill.proxy(*LOW, "--", *server)
    servers = {
        "direct": {"command": server[0], "args": server[1:], "env": plain_environ()},
        "through": {"command": through[0], "args": through[1:], "env": overspill.environ},
    }
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    asked = ["--method", "resources/read", "--uri", URI]
    environ = {**plain_environ(), "HOME": str(tmp_path)}
    found = [await said([*inspector, "--config", str(file), "--server", name, *asked], environ) for name in servers]
    assert len(found[0]["contents"][0]["text"]) > 3 * LIMIT
    assert found[0] == found[1]
