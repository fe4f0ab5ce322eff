"""What `overspill wrap` writes is started by the official client, and the server behind it answers as before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from extras import OFFERED
from frames import TOO_LARGE
from mcp import ClientSession, StdioServerParameters, stdio_client
from small_servers import entry, over_http

pytestmark = pytest.mark.slow

PROGRAM = Path(sys.executable).with_name("overspill")


def wrapped(home: Path, servers: dict[str, Any]) -> dict[str, Any]:
    file = home / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    subprocess.run([PROGRAM, "wrap", file], env=environment(home), check=True, capture_output=True, timeout=60)
    return json.loads(file.read_text())["mcpServers"]


def environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"], "TMPDIR": str(home), "OVERSPILL_HUB": "off"}


TOOLS_AND_ANSWER = (["add", "log"], TOO_LARGE)


@asynccontextmanager
async def connected(home: Path, server: dict[str, Any]) -> AsyncIterator[ClientSession]:
    env = {**environment(home), **server.get("env", {})}
    with anyio.fail_after(60):
        parameters = StdioServerParameters(command=server["command"], args=server["args"], env=env)
        async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
            await session.initialize()
            yield session


async def list_names(session: ClientSession) -> list[str]:
    return [tool.name for tool in (await session.list_tools()).tools]


async def used(home: Path, server: dict[str, Any]) -> tuple[list[str], str]:
    """The names of its tools, and the first words of a large result."""
    async with connected(home, server) as session:
        result = await session.call_tool("log", {})
        return await list_names(session), result.content[0].text[:24]


async def test_a_command_runs_behind_the_proxy(tmp_path: Path):
    servers = wrapped(tmp_path, {"small": entry("works")})
    assert servers["small"]["command"] == str(PROGRAM)
    assert await used(tmp_path, servers["small"]) == TOOLS_AND_ANSWER


async def test_the_entry_beside_it_reads_what_was_stored(tmp_path: Path):
    servers = wrapped(tmp_path, {"small": entry("works")})
    async with connected(tmp_path, servers["small"]) as small, connected(tmp_path, servers["overspill"]) as reader:
        assert await list_names(reader) == OFFERED
        shown = (await small.call_tool("log", {})).content[0].text
        call = {"id": shown.split("stored as ")[1].split(".")[0], "mode": "slice", "slice": {"lines": "1-1"}}
        read = (await reader.call_tool("get_tool_output", call)).content[0].text
        assert read.splitlines()[0] == "line"


async def test_a_url_with_a_header_runs_behind_the_proxy(tmp_path: Path):
    with over_http("Authorization", "Bearer s3cret") as url:
        servers = wrapped(tmp_path, {"small": {"type": "http", "url": url, "headers": {"Authorization": "Bearer s3cret"}}})
        assert "s3cret" not in json.dumps(servers["small"]["args"])
        assert await used(tmp_path, servers["small"]) == TOOLS_AND_ANSWER


async def test_a_url_with_a_secret_in_it_runs_behind_the_proxy(tmp_path: Path):
    with over_http("X-Team", "7") as url:
        servers = wrapped(tmp_path, {"small": {"url": f"{url}?key=s3cret", "headers": {"X-Team": "7"}}})
        assert "s3cret" not in json.dumps(servers["small"]["args"])
        assert await used(tmp_path, servers["small"]) == TOOLS_AND_ANSWER
