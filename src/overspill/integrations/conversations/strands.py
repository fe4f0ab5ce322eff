"""Strands' messages and results."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from strands.types._events import ToolResultEvent

from overspill.gate.collect import text_block
from overspill.integrations.old_results import Called, Entry, Lines, OldResult, Said
from overspill.types import Output, Reply


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
                yield Said("user", text) if None in texts else OldResult((index, number), result["toolUseId"], text, is_error)


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


def read_said(agent: Any) -> list[dict[str, Any]]:
    messages = agent.messages[-20:]
    texts = [[block["text"] for block in message["content"] if "text" in block] for message in messages]
    return [{"role": message["role"], "content": "\n".join(text)} for message, text in zip(messages, texts, strict=True) if text]


def read_result(event: ToolResultEvent) -> Output:
    """Blocks that are neither text nor JSON pass as what they are."""
    blocks: list[dict[str, Any]] = []
    for block in event.tool_result["content"]:
        text = read_text(block)
        blocks.append({"type": "strands", "block": block} if text is None else text_block(text))
    return Output(blocks, is_error=event.tool_result["status"] == "error", original=event)


def write_result(reply: Reply, id: str) -> ToolResultEvent:
    if reply.passed:
        return reply.value
    content = [block["block"] if block["type"] == "strands" else {"text": block["text"]} for block in reply.content]
    result = {"toolUseId": id, "status": "error" if reply.is_error else "success", "content": content}
    return ToolResultEvent(result if reply.original is None else {**reply.original.tool_result, **result})
