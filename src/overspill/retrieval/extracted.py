"""What a model reads about an extraction: the abstract with its checked citations, or the snippets as JSON."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import msgspec

from overspill import wording
from overspill.extraction import BUILTIN, NOT_FOUND
from overspill.reading import Bound
from overspill.retrieval.pages import Page
from overspill.text import encoding
from overspill.text.humanize import one_line
from overspill.truncate import truncate
from overspill.types import Excerpt, Extraction, Kept
from overspill.wording import framing

_WARNING_CHARS = 2_000
_SNIPPETS_OMITTED = "More snippets match than fit. Ask for less at a time, or read round a byte span with slice."


def format_abstract(kept: Kept, found: Extraction, bound: Bound) -> Page:
    """`tool_output`, within the bound: the words of the citations give way first, then their places, then the end of the text.

    How many checked citations gave way is said to the last.
    """
    before = ["\n".join(f"WARNING: {one_line(line, _WARNING_CHARS)}" for line in found.warnings)] if found.warnings else []
    # What the built-in engine answers is nothing but passages: their words stand above already.
    quoted = found.model != BUILTIN
    answer, closing = _with_closing(found)

    def worded(answer: str, *after: str) -> str:
        # With words of ours round it the answer stands in a block; alone it is all there is below the first line.
        ours = "\n\n".join(filter(None, (closing, *after)))
        shown = framing.block(framing.OPENING, answer) if answer and (before or ours or framing.imitates(answer)) else answer
        body = "\n\n".join([*before, "\n".join(filter(None, (shown, ours)))])
        return encoding.clean(wording.abstract(kept.tool, kept.handle, found.planned_strategy or found.strategy, body))

    def cited(count: int, *, quoted: bool = False) -> list[str]:
        omitted = len(found.excerpts) - count
        return [wording.citations(found.excerpts[:count], quoted=quoted, omitted=omitted)] if found.excerpts else []

    every = len(found.excerpts)
    for shown in (worded(answer, *cited(every, quoted=quoted)), worded(answer, *cited(every))):
        if bound.holds(shown):
            return Page(shown, kept.id)
    over = bisect_left(range(every), True, key=lambda count: not bound.holds(worded(answer, *cited(count))))
    if over:
        return Page(worded(answer, *cited(over - 1)), kept.id)
    limit = len(answer)
    while not bound.holds(shown := worded(truncate(answer, limit, "head").text, *cited(0))) and limit > 1:
        limit = max(1, limit * 9 // 10)
    return Page(shown, kept.id)


def _with_closing(found: Extraction) -> tuple[str, str]:
    """The built-in engine's passages, and its last line, which says how many match: that is ours."""
    if found.model != BUILTIN or not found.found:
        return found.text, ""
    passages, _, closing = found.text.rpartition("\n")
    return passages, closing


def format_snippets(kept: Kept, found: Extraction, bound: Bound) -> Page:
    """`get_tool_output` in mode extract: whole snippets, as many as the bound holds, and how many it does not."""
    for count in range(len(found.excerpts), -1, -1):
        shown = _json(found, found.excerpts[:count])
        if bound.holds(shown):
            return Page(shown, kept.id)
    return Page(_json(found, ()), kept.id)


def _json(found: Extraction, excerpts: tuple[Excerpt, ...]) -> str:
    result: dict[str, Any] = {
        "snippets": [_snippet(excerpt) for excerpt in excerpts],
        "source_hash": found.source_hash,
        "source_size_bytes": found.source_size_bytes,
        "chunks_searched": found.chunks_searched,
        "chunks_total": found.chunks_total,
        "confidence": round(found.confidence, 3),
    }
    if not found.found and found.chunks_searched == found.chunks_total:
        result["no_match_reason"] = NOT_FOUND
    if omitted := len(found.excerpts) - len(excerpts):
        result["snippets_omitted"] = omitted
        result["hint"] = _SNIPPETS_OMITTED
    if found.strategy == "truncate":
        result["truncated"] = encoding.clean(found.text)
    if found.warnings:
        result["warnings"] = list(found.warnings)
    return msgspec.json.encode(result).decode()


def _snippet(excerpt: Excerpt) -> dict[str, Any]:
    return {
        "text": encoding.clean(excerpt.text),
        "start_byte": excerpt.start_byte,
        "end_byte": excerpt.end_byte,
        "chunk_index": excerpt.chunk_index,
        "start_char": excerpt.start_char,
        "end_char": excerpt.end_char,
        "start_line": excerpt.start_line,
        "end_line": excerpt.end_line,
    }
