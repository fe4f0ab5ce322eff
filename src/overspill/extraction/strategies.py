"""The strategies that ask a model. To add one, write its file, name its mode in `ModelMode`, and register it here.

The type checker complains about a mode without a strategy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import assert_never

from msgspec import Struct

from overspill.extraction import chunks
from overspill.extraction.document import ModelMode, Policy, Strategy
from overspill.extraction.full_chunked import extract_full_chunked
from overspill.extraction.inquiry import Inquiry
from overspill.extraction.read_grep import extract_read_grep
from overspill.types import Extraction, Size


class ModelStrategy(Struct, frozen=True):
    name: Strategy
    extract: Callable[[Inquiry], Awaitable[Extraction]]


def find_strategy(mode: ModelMode) -> ModelStrategy:
    match mode:
        case "full-chunked" | "snippets":
            return ModelStrategy("full-chunked", extract_full_chunked)
        case "read-grep":
            return ModelStrategy("read-grep", extract_read_grep)
        case _:
            assert_never(mode)


def choose_mode(size: Size, policy: Policy, chunk_tokens: int) -> ModelMode:
    """The mode that `auto` means. It reads a few chunks whole, and long lines, where line numbers and patterns do not help."""
    few = chunks.count(size.tokens, chunk_tokens, policy.overlap_percent) <= policy.max_chunks
    return "full-chunked" if few or size.average_line_bytes > policy.avg_line_bytes_threshold else "read-grep"
