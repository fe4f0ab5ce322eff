"""The official client, which checks results against schemas, in front of the proxy as a user starts it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import mcp
import mcp_types
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client
from wire import every, proxied

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.anyio
async def test_the_official_client_accepts_the_proxys_results(mode: str, tmp_path: Path) -> None:
    command, *args = proxied(every("legacy"), "--set", f"storeDir={tmp_path}", "--tools", "when-needed")
    asked: list[str] = []
    changed = anyio.Event()

    async def elicit(_: Any, params: Any) -> mcp_types.ElicitResult:
        asked.append(params.message)
        return mcp_types.ElicitResult(action="accept", content={"name": "Ann"})

    async def heard(message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            changed.set()

    transport = stdio_client(StdioServerParameters(command=command, args=args, env={"OVERSPILL_HUB": "off"}))
    with anyio.fail_after(60):
        async with mcp.Client(transport, mode=mode, elicitation_callback=elicit, message_handler=heard) as client:
            tools = await client.list_tools()
            assert {tool.name for tool in tools.tools} >= {"say", "forecast"}
            small = await client.call_tool("forecast", {"days": 2})
            assert small.structured_content == {"days": [{"note": "day 0 is dry"}, {"note": "day 1 is dry"}]}
            large = await client.call_tool("forecast", {"days": 2000})
            facts = large.structured_content["overspill"]
            read = await client.call_tool("get_tool_output", {"id": facts["handle"], "mode": "query", "query": "/days/1999/note"})
            assert "day 1999 is dry" in read.content[0].text
            form = {
                "method": "elicitation/create",
                "params": {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}},
            }
            answer = await client.call_tool("ask", {"requests": [form]})
            assert json.loads(answer.content[0].text)[0]["content"] == {"name": "Ann"}
            assert asked == ["Name?"]
            if mode == "legacy":
                await changed.wait()
