"""Claude Code's results, of its own tools and of servers."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp_types import CallToolResult, TextContent, Tool

from overspill.gate.collect import is_blocks, text_block
from overspill.hooks.shapes import HookEvent, Unusable, find_text
from overspill.types import Output, Reply


def name_prefix(server: str) -> str:
    """What Claude Code puts before the names of a server's tools: ASCII letters, digits, _ and -, and _ for all others."""
    known = (each if each.isascii() and (each.isalnum() or each in "_-") else "_" for each in server)
    return f"mcp__{''.join(known)}__"


def define_tool(tool: dict[str, Any], prefix: str) -> Tool:
    """Claude Code puts the prefix before the name itself, and may load tools only when the model has searched for them."""
    name, always = tool["name"].removeprefix(prefix), {"anthropic/alwaysLoad": True}
    described = {"name": name, "description": tool["description"], "inputSchema": tool["parameters"], "_meta": always}
    return Tool.model_validate(described)


def read_own_result(event: Any) -> tuple[Output, Any] | None:
    """What a built-in tool or a server of another process returned, and how to replace it. A built-in tool's result has its own
    form; if that is not known, Claude Code's result stays."""
    response = event["tool_response"]
    if isinstance(response, str) and response:
        return Output([text_block(response)]), lambda reply: {"updatedToolOutput": reply.text}
    if is_blocks(response):
        return Output(list(response)), lambda reply: {"updatedToolOutput": reply.content}
    try:
        found = find_text("claude-code", HookEvent("PostToolUse", event["tool_name"], response))
    except Unusable:
        return None
    return Output([text_block(found.text)]), lambda reply: found.answer(reply.text)["hookSpecificOutput"]


def read_result(result: Any) -> Output:
    """What a server in this process returned."""
    if not isinstance(result, CallToolResult):  # it asks for more, and the client answers it
        return Output([], original=result)
    blocks = [each.model_dump(by_alias=True, exclude_none=True) for each in result.content]
    return Output(blocks, is_error=bool(result.is_error), original=result)


def write_result(reply: Reply, news: Callable[[], str]) -> Any:
    """Also tells the model which slow tools have finished meanwhile."""
    passed = reply.value if reply.passed and reply.original is not None else None
    if passed is not None and not isinstance(passed, CallToolResult):  # then there is no place for news, and they wait
        return passed
    more = [TextContent(type="text", text=told)] if (told := news()) else []
    if passed is not None:
        return passed.model_copy(update={"content": [*passed.content, *more]}) if more else passed
    return CallToolResult.model_validate({"content": [*reply.content, *more], "isError": reply.is_error})
