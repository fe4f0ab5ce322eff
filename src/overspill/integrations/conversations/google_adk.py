"""ADK's contents."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from overspill.integrations.old_results import Called, Entry, Lines, Result, Said


def read_conversation(contents: list[Any]) -> Iterator[Entry]:
    for index, content in enumerate(contents):
        for number, part in enumerate(content.parts or ()):
            if (call := part.function_call) is not None:
                yield Called(call.id or "", call.name, call.args)
            elif (answer := part.function_response) is not None and not answer.parts:
                response = answer.response or {}
                text = response["result"] if _is_text_result(response) else json.dumps(response, ensure_ascii=False, default=str)
                yield Result((index, number), answer.id or "", text, "error" in response or bool(response.get("isError")))
            else:
                yield Said("assistant" if content.role == "model" else "user", part.text or "")


def _is_text_result(response: dict[str, Any]) -> bool:
    return list(response) == ["result"] and isinstance(response["result"], str)


def replace_results(contents: list[Any], lines: Lines) -> list[Any]:
    def replace(part: Any, place: tuple[int, int]) -> Any:
        if place not in lines:
            return part
        answer = part.function_response.model_copy(update={"response": {"result": lines[place]}})
        return part.model_copy(update={"function_response": answer})

    return [
        content.model_copy(update={"parts": [replace(part, (index, number)) for number, part in enumerate(content.parts or ())]})
        for index, content in enumerate(contents)
    ]
