"""Pydantic AI's messages."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart

from overspill.integrations.old_results import Called, Entry, Lines, OldResult, Said


def read_conversation(messages: Sequence[ModelMessage]) -> Iterator[Entry]:
    """Only plain results can be replaced: Pydantic AI reads those of its own tools again."""
    for index, message in enumerate(messages):
        for number, part in enumerate(message.parts):
            if isinstance(part, ToolCallPart):
                yield Called(part.tool_call_id, part.tool_name, part.args)
            elif type(part) is ToolReturnPart and not part.files:
                yield OldResult((index, number), part.tool_call_id, part.model_response_str(), part.outcome != "success")
            else:
                yield Said("assistant" if isinstance(message, ModelResponse) else "user", _text_of(part))


def _text_of(part: Any) -> str:
    content = getattr(part, "content", "")
    texts = [content] if isinstance(content, str) else content if isinstance(content, list | tuple) else ()
    return "\n".join(each for each in texts if isinstance(each, str))


def replace_results(messages: Sequence[ModelMessage], lines: Lines) -> list[ModelMessage]:
    changed: list[ModelMessage] = []
    for index, message in enumerate(messages):
        parts = [
            replace(part, content=lines[index, number]) if (index, number) in lines else part
            for number, part in enumerate(message.parts)
        ]
        changed.append(replace(message, parts=parts) if parts != message.parts else message)
    return changed
