"""Agent Framework's messages."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

from agent_framework import Content

from overspill.integrations.old_results import Called, Entry, Lines, OldResult, Said


def read_conversation(messages: Sequence[Any]) -> Iterator[Entry]:
    for index, message in enumerate(messages):
        for number, content in enumerate(message.contents):
            if content.type == "function_call":
                yield Called(content.call_id or "", content.name or "", content.arguments)
            elif content.type == "function_result" and all(each.type == "text" for each in content.items or ()):
                yield OldResult((index, number), content.call_id or "", str(content.result), content.exception is not None)
            else:
                yield Said("assistant" if message.role == "assistant" else "user", content.text or "")


def replace_results(messages: Sequence[Any], lines: Lines) -> list[Any]:
    def replace(content: Content, place: tuple[int, int]) -> Content:
        if place not in lines:
            return content
        ours = copy(content)
        ours.result, ours.items = lines[place], [Content.from_text(lines[place])]
        return ours

    changed = [copy(message) for message in messages]
    for index, message in enumerate(changed):
        message.contents = [replace(content, (index, number)) for number, content in enumerate(message.contents)]
    return changed
