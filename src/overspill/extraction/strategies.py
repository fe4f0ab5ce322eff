"""The strategies that ask a model. To add one, write its file, name its mode in `ModelMode`, and register it here.

The type checker complains about a mode without a strategy.
"""

from __future__ import annotations

from typing import assert_never

from overspill.extraction.focused import extract_focused
from overspill.extraction.full_chunked import extract_full_chunked
from overspill.extraction.inquiry import Inquiry
from overspill.extraction.read_grep import extract_read_grep
from overspill.types import Extraction


async def extract_by_mode(inquiry: Inquiry) -> Extraction:
    """What is known from an earlier question, or what the strategy of the mode finds."""
    if known := inquiry.cache.results.get(inquiry.key):
        return known
    match inquiry.mode:
        case "focused":
            return await extract_focused(inquiry)
        case "full-chunked" | "snippets":
            return await extract_full_chunked(inquiry)
        case "read-grep":
            return await extract_read_grep(inquiry)
        case _:
            assert_never(inquiry.mode)
