"""Strands' messages."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from overspill.integrations.old_results import Called, Entry, Lines, Result, Said


def read_conversation(messages: list[Any]) -> Iterator[Entry]:
    for index, message in enumerate(messages):
        for number, block in enumerate(message["content"]):
            if (call := block.get("toolUse")) is not None:
                yield Called(call["toolUseId"], call["name"], call["input"])
            elif (result := block.get("toolResult")) is None:
                yield Said(message["role"], block.get("text", ""))
            else:
                texts = [read_text(each) for each in result["content"]]
                text = "\n".join(each for each in texts if each is not None)
                is_error = result["status"] == "error"
                yield Said("user", text) if None in texts else Result((index, number), result["toolUseId"], text, is_error)


def replace_results(messages: list[Any], lines: Lines) -> list[Any]:
    def replace(block: Any, place: tuple[int, int]) -> Any:
        return {**block, "toolResult": {**block["toolResult"], "content": [{"text": lines[place]}]}} if place in lines else block

    return [
        {**message, "content": [replace(block, (index, number)) for number, block in enumerate(message["content"])]}
        for index, message in enumerate(messages)
    ]


def read_text(block: Any) -> str | None:
    return block["text"] if "text" in block else _to_json(block["json"]) if "json" in block else None


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
