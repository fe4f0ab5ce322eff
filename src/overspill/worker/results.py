"""A tool's result on its way into the store: what it is, and the text that stands for what is not text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from inspect import isgenerator
from typing import Any, cast

from overspill.gate.collect import is_blocks
from overspill.gate.serialise import to_json
from overspill.types import Output, OutputForm


def prepare_result(result: Any) -> tuple[Any, OutputForm]:
    """What to store, and its form. Blocks are stored as JSON if they are more than plain texts."""
    if result is None:
        return None, "none"
    kind: OutputForm | None = _find_form(result)
    if kind is not None:
        return result, kind
    if isinstance(result, Output):
        if _is_one_text(result.content):
            return result, "text"
        return Output(to_json(result.content), is_error=result.is_error), "blocks"  # pyright: ignore[reportArgumentType]
    if is_blocks(result):
        return to_json(result), "blocks"
    return result, "json"


def _find_form(result: object) -> OutputForm | None:
    if isinstance(result, str | AsyncIterator) or isgenerator(result):
        return "text"
    return "bytes" if isinstance(result, bytes | bytearray | memoryview) else None


def _is_one_text(content: list[Any]) -> bool:
    if len(content) != 1 or not isinstance(content[0], Mapping):
        return False
    only = cast("Mapping[str, Any]", content[0])
    return set(only) == {"type", "text"} and only["type"] == "text"
