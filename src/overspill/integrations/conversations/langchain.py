"""LangChain's messages and results."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Command

from overspill.integrations.old_results import Called, Entry, Lines, OldResult, Said
from overspill.types import Output, Reply


def read_conversation(messages: Sequence[Any]) -> Iterator[Entry]:
    for place, message in enumerate(messages):
        blocks = [] if isinstance(message.content, str) else message.content
        if isinstance(message, ToolMessage) and all(isinstance(each, str) or each.get("type") == "text" for each in blocks):
            yield OldResult(place, message.tool_call_id, message.text, message.status == "error")
        else:
            yield Said("assistant" if isinstance(message, AIMessage) else "user", message.text)
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            yield Called(call["id"] or "", call["name"], call["args"])


def replace_results(messages: Sequence[Any], lines: Lines) -> list[Any]:
    return [each.model_copy(update={"content": lines[place]}) if place in lines else each for place, each in enumerate(messages)]


def read_said(messages: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"role": message.type, "content": message.content} for message in messages[-20:]]


def _find_message(result: Any, id: str | None) -> ToolMessage | None:
    """The answer in a tool's result. A tool may return it inside a command that updates the state as well."""
    if isinstance(result, Command) and isinstance(result.update, dict):
        answers = [each for each in result.update.get("messages", ()) if isinstance(each, ToolMessage)]
        return next((each for each in answers if each.tool_call_id == id), None)
    return result if isinstance(result, ToolMessage) else None


def read_result(result: Any, id: str | None) -> Output:
    message = _find_message(result, id)
    content: Any = [] if message is None else message.content
    parts: Sequence[Any] = [content] if isinstance(content, str) else content
    blocks = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return Output(blocks, is_error=message is not None and message.status == "error", original=result)


def write_result(reply: Reply, call: Any) -> Any:
    if reply.passed:
        return reply.value
    is_text = all(isinstance(block, dict) and block.get("type") == "text" for block in reply.content)
    content: Any = reply.text if is_text else reply.content
    status = "error" if reply.is_error else "success"
    original = _find_message(reply.original, call["id"])
    if original is None:
        return ToolMessage(content, tool_call_id=call["id"], name=call["name"], status=status)
    answer = original.model_copy(update={"content": content, "status": status})
    if not isinstance(reply.original, Command):
        return answer
    messages = [answer if each is original else each for each in reply.original.update["messages"]]
    return replace(reply.original, update={**reply.original.update, "messages": messages})
