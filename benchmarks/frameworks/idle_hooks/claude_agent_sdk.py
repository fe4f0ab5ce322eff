"""The Claude Agent SDK: the hook that says whose call it is. Claude Code asks it before each call."""

from __future__ import annotations

from typing import Any

from claude_agent_sdk import HookMatcher, create_sdk_mcp_server

from tests.integrations.drivers.claude_agent_sdk import ClaudeAgent, make_tool


async def do_nothing(event: Any, id: Any, context: Any) -> Any:
    return {}


def make_agent(functions: Any, script: Any) -> Any:
    servers = {"tools": create_sdk_mcp_server("tools", tools=[make_tool(each) for each in functions])}
    hooks = {"PreToolUse": [HookMatcher(hooks=[do_nothing])]}
    return ClaudeAgent(script, {"mcp_servers": servers, "allowed_tools": ["mcp__tools"], "hooks": hooks})
