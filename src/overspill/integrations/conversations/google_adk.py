"""ADK's contents and declarations."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from google.genai import types

from overspill.gate.looking_for import NAME
from overspill.integrations.old_results import Called, Entry, Lines, OldResult, Said


def read_conversation(contents: list[Any]) -> Iterator[Entry]:
    for index, content in enumerate(contents):
        for number, part in enumerate(content.parts or ()):
            if (call := part.function_call) is not None:
                yield Called(call.id or "", call.name, call.args)
            elif (answer := part.function_response) is not None and not answer.parts:
                response = answer.response or {}
                text = response["result"] if _is_text_result(response) else json.dumps(response, ensure_ascii=False, default=str)
                yield OldResult((index, number), answer.id or "", text, "error" in response or bool(response.get("isError")))
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


def widen_declaration(declared: Any, widen: Callable[..., Any]) -> Any:
    """ADK describes arguments as JSON Schema, or as a `Schema` of the API, or not at all if there are none."""
    if (schema := declared.parameters_json_schema) is not None:
        return declared.model_copy(update={"parameters_json_schema": widen(declared.name, schema)})
    known = declared.parameters or types.Schema(type=types.Type.OBJECT)
    own = known.properties or {}
    described = {"type": "object", "properties": {name: {} for name in own}, "required": list(known.required or ())}
    added = widen(declared.name, described)["properties"].get(NAME)
    if not added:  # one of the tool's own is empty above
        return declared
    ours = types.Schema(type=types.Type.STRING, description=added["description"])
    return declared.model_copy(update={"parameters": known.model_copy(update={"properties": {**own, NAME: ours}})})
