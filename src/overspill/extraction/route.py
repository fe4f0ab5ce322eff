"""Which way an extraction goes. Pure."""

from __future__ import annotations

from overspill.extraction import chunks
from overspill.extraction.document import Policy, Strategy
from overspill.types import Size


def route(size: Size, policy: Policy, chunk_tokens: int) -> Strategy:
    """Few chunks are read whole; so are long lines, among which lines and patterns lead nowhere."""
    few = chunks.count(size.tokens, chunk_tokens, policy.overlap_percent) <= policy.max_chunks
    return "full-chunked" if few or size.average_line_bytes > policy.avg_line_bytes_threshold else "read-grep"
