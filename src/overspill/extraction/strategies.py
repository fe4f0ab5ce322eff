"""The strategies that ask a model. To add one, write its file, name its mode in `ModelMode`, and register it here.

The type checker complains about a mode without a strategy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import assert_never

from msgspec import Struct

from overspill.extraction.document import ModelMode, Strategy
from overspill.extraction.focused import extract_focused
from overspill.extraction.full_chunked import extract_full_chunked
from overspill.extraction.inquiry import Inquiry
from overspill.extraction.read_grep import extract_read_grep
from overspill.types import Extraction


class ModelStrategy(Struct, frozen=True):
    name: Strategy
    extract: Callable[[Inquiry], Awaitable[Extraction]]


def find_strategy(mode: ModelMode) -> ModelStrategy:
    match mode:
        case "focused":
            return ModelStrategy("focused", extract_focused)
        case "full-chunked" | "snippets":
            return ModelStrategy("full-chunked", extract_full_chunked)
        case "read-grep":
            return ModelStrategy("read-grep", extract_read_grep)
        case _:
            assert_never(mode)
