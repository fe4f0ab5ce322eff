"""What `overspill wrap` writes is started by the official client, and the server behind it answers as before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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


TOOLS_AND_ANSWER = (["add", "log", *OFFERED], TOO_LARGE)


async def used(home: Path, server: dict[str, Any]) -> tuple[list[str], str]:
    """The names of its tools, and the first words of a large result."""
    env = {**environment(home), **server.get("env", {})}
    with anyio.fail_after(60):
        parameters = StdioServerParameters(command=server["command"], args=server["args"], env=env)
        async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
            await session.initialize()
            names = [tool.name for tool in (await session.list_tools()).tools]
            result = await session.call_tool("log", {})
    return names, result.content[0].text[:24]


async def test_a_command_runs_behind_the_proxy(tmp_path: Path):
    servers = wrapped(tmp_path, {"small": entry("works")})
    assert servers["small"]["command"] == str(PROGRAM)
    assert await used(tmp_path, servers["small"]) == TOOLS_AND_ANSWER


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
