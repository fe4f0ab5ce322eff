"""The answers to an extraction: an abstract with its checked citations, or snippets as JSON."""

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

MAX_WARNING_CHARS = 2_000
_SNIPPETS_OMITTED = "More snippets match than fit. Ask for less at a time, or read around a byte span with slice."


def format_abstract(kept: Kept, found: Extraction, bound: Bound, handle: str = "", *, closed_strategies: bool = False) -> Page:
    """The answer of `tool_output`. If the bound is tight, it drops the words of the citations first, then their places, then
    the end of the text, and always says how many checked citations it dropped.

    `handle` is what the answer calls the output, if not by its handle. `closed_strategies`: the first line may not name the
    engine, so the next one does.
    """
    is_builtin = found.model == BUILTIN
    strategy = (found.planned_strategy if closed_strategies else "") or found.strategy
    warnings = "\n".join(f"WARNING: {one_line(line, MAX_WARNING_CHARS)}" for line in found.warnings)
    decoded = f"NOTE: {wording.decoding(found.decoding)}" if found.decoding else ""
    before = list(filter(None, (wording.BUILTIN_ANSWERED if is_builtin and closed_strategies else "", decoded, warnings)))
    answer, closing = _split_closing(found)

    def render(answer: str, *after: str) -> str:
        # The answer goes into a block if there are words of ours around it. Alone, it is everything below the first line.
        ours = "\n\n".join(filter(None, (closing, *after)))
        shown = framing.block(framing.OPENING, answer) if answer and (before or ours or framing.imitates(answer)) else answer
        body = "\n\n".join([*before, "\n".join(filter(None, (shown, ours)))])
        return encoding.clean(wording.abstract(kept.tool, handle or kept.handle, strategy, body))

    def cite(count: int, *, quoted: bool = False) -> list[str]:
        omitted = len(found.excerpts) - count
        return [wording.citations(found.excerpts[:count], quoted=quoted, omitted=omitted)] if found.excerpts else []

    every = len(found.excerpts)
    # The engine answers with nothing but passages, so quoting them again below would repeat them.
    for text in (render(answer, *cite(every, quoted=not is_builtin)), render(answer, *cite(every))):
        if bound.holds(text):
            return Page(text, kept.id)
    too_many = bisect_left(range(every), True, key=lambda count: not bound.holds(render(answer, *cite(count))))
    if too_many:
        return Page(render(answer, *cite(too_many - 1)), kept.id)
    limit = len(answer)
    while not bound.holds(text := render(truncate(answer, limit, "head").text, *cite(0))) and limit > 1:
        limit = max(1, limit * 9 // 10)
    return Page(text, kept.id)


def _split_closing(found: Extraction) -> tuple[str, str]:
    """The passages of the built-in engine, and its last line, which is ours: it says how many records match."""
    if found.model != BUILTIN or not found.found:
        return found.text, ""
    passages, _, closing = found.text.rpartition("\n")
    return passages, closing


def format_snippets(kept: Kept, found: Extraction, bound: Bound) -> Page:
    """The answer of `get_tool_output` in mode `extract`: as many whole snippets as the bound holds, and how many it does not."""
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
    if found.decoding:
        result["decoding"] = found.decoding
        result["note"] = wording.decoding(found.decoding)
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
