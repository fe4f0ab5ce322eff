"""agno's messages and results."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from agno.tools.function import ToolResult

from overspill.integrations.functions import show_reply
from overspill.types import Output, Reply


def read_said(messages: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"role": each.role, "content": each.get_content_string()} for each in messages[-20:]]


def make_tool(function_call: Callable[..., Any], arguments: dict[str, Any], *, is_async: bool) -> Callable[..., Any]:
    """agno takes the arguments from the dictionary that it shows to hooks. What a stored output fills in is there only during the
    call, so that agno does not store it with the run."""
    given = dict(arguments)

    def call(**filled: Any) -> Any:
        arguments.update(filled)
        try:
            return _read_result(function_call(**filled))
        finally:
            arguments.update(given)

    async def call_async(**filled: Any) -> Any:
        arguments.update(filled)
        try:
            return _read_result(await function_call(**filled))
        finally:
            arguments.update(given)

    return call_async if is_async else call


def _read_result(result: Any) -> Any:
    if isinstance(result, ToolResult):
        return Output(result.content, original=result)
    is_stream = inspect.isgenerator(result) or inspect.isasyncgen(result)
    return Output([], original=result) if is_stream else result  # agno reads the stream itself, and shows what it yields


def write_result(reply: Reply, news: Callable[[], str]) -> Any:
    """A text also says which slow tools have finished meanwhile, because a request of agno has no place for that."""
    if isinstance(reply.original, ToolResult):
        return reply.value if reply.passed else reply.original.model_copy(update={"content": reply.text})
    shown = show_reply(reply)
    return "\n\n".join(part for part in (shown, news()) if part) if isinstance(shown, str) else shown
