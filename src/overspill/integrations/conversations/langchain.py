"""LangChain's messages."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from overspill.integrations.old_results import Called, Entry, Lines, Result, Said


def read_conversation(messages: Sequence[Any]) -> Iterator[Entry]:
    for place, message in enumerate(messages):
        blocks = [] if isinstance(message.content, str) else message.content
        if isinstance(message, ToolMessage) and all(isinstance(each, str) or each.get("type") == "text" for each in blocks):
            yield Result(place, message.tool_call_id, message.text, message.status == "error")
        else:
            yield Said("assistant" if isinstance(message, AIMessage) else "user", message.text)
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            yield Called(call["id"] or "", call["name"], call["args"])


def replace_results(messages: Sequence[Any], lines: Lines) -> list[Any]:
    return [each.model_copy(update={"content": lines[place]}) if place in lines else each for place, each in enumerate(messages)]
