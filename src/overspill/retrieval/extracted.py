"""The answers to an extraction: an abstract with its checked citations, or snippets as JSON."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from overspill.extraction import BUILTIN, NOT_FOUND
from overspill.reading import Bound
from overspill.retrieval.pages import Page
from overspill.text import encoding
from overspill.text.humanize import one_line
from overspill.truncate import truncate_until
from overspill.types import LIKELY, Excerpt, Extraction, Kept
from overspill.wording import framing
from overspill.wording import retrieval as wording
from overspill.wording.presets import OVERSPILL, Wording

MAX_WARNING_CHARS = 2_000
_MIN_REFITTED_BYTES = 256  # with less room, dropping snippets is just as good
_SNIPPETS_OMITTED = "More snippets match than fit. Ask for less at a time, or read around a byte span with slice."

Refit: TypeAlias = Callable[[Extraction, int], Extraction]
"""Takes a result and a number of bytes, and returns the result with at most that much of the engine's passages. Blocks."""


def format_abstract(
    kept: Kept, found: Extraction, bound: Bound, handle: str = "", words: Wording = OVERSPILL, refit: Refit | None = None
) -> Page:
    """The answer of `tool_output`. If the bound is tight, it drops the words of the citations first, then their places, then
    the passages that matter least, then the end of a model's text, and always says how many checked citations it dropped.

    `handle` is the name that the answer uses for the output instead of its handle.
    """
    draft = partial(_Draft, kept, handle=handle or kept.handle, words=words)
    found = _limit_unsupported(found, bound, lambda found: draft(found).render(len(found.excerpts)))
    text = draft(found).fit(bound)
    if not bound.holds(text) and refit and _has_passages(found):
        found = refit(found, bound.after(draft(_put_passages(found, "-\n")).render(0)).least_bytes)
        text = draft(found).fit(bound)
    if bound.holds(text) and found.text:
        return Page(text, kept.id)
    if _is_by_engine(found):
        return Page(draft(replace(found, text=f"\n{wording.NONE_FITS}", excerpts=())).render(0), kept.id)
    alone = _put_passages(found, "")
    return Page(_shorten(found.text, bound, lambda shown: draft(replace(alone, text=shown)).render(0)), kept.id)


def _shorten(text: str, bound: Bound, render: Callable[[str], str]) -> str:
    """The rendered text, with as much of its beginning as the bound allows."""
    return render(truncate_until(text, lambda shown: bound.holds(render(shown))))


def _limit_unsupported(found: Extraction, bound: Bound, render: Callable[[Extraction], str]) -> Extraction:
    """Shorten a model's unsupported words to a quarter of the room if not everything fits: they are worth less than the rest."""
    if not found.unsupported or bound.holds(render(found)):
        return found
    part = Bound(bound.least_bytes // 4)
    words = _shorten(encoding.clean(found.unsupported), part, lambda shown: msgspec.json.encode(shown).decode())
    return replace(found, unsupported=msgspec.json.decode(words))


def _is_by_engine(found: Extraction) -> bool:
    return found.model == BUILTIN and found.found


def _has_passages(found: Extraction) -> bool:
    return _is_by_engine(found) or found.passages is not None


def _put_passages(found: Extraction, text: str) -> Extraction:
    """Replaces the engine's passages by this text."""
    if _is_by_engine(found):
        return replace(found, text=text)
    return replace(found, passages=replace(found.passages, text=text)) if found.passages else found


class _Draft:
    """The parts of an answer, in the order in which a model reads them."""

    def __init__(self, kept: Kept, found: Extraction, *, handle: str, words: Wording) -> None:
        self._answer, self._closing = _split_closing(found)
        self._passages, self._passages_closing = _split_closing(found.passages) if found.passages else ("", "")
        self._tool, self._handle, self._found = kept.tool, handle, found
        self._strategy = words.strategy(found.planned_strategy, found.strategy)
        warnings = "\n".join(f"WARNING: {one_line(line, MAX_WARNING_CHARS)}" for line in found.warnings)
        decoded = f"NOTE: {wording.decoding(found.decoding)}" if found.decoding else ""
        engine = words.builtin_note if found.model == BUILTIN else ""
        nearest = (words.nearest or NOT_FOUND) if found.is_nearest else ""
        self._before = list(filter(None, (engine, decoded, warnings, nearest)))

    def fit(self, bound: Bound) -> str:
        """The answer with as many of its citations as the bound allows; with none if even the other parts do not fit."""
        every = len(self._found.excerpts)
        # The engine answers with nothing but passages, so quoting them again below would repeat them.
        for text in (self.render(every, quoted=self._found.model != BUILTIN), self.render(every)):
            if bound.holds(text):
                return text
        too_many = bisect_left(range(every), True, key=lambda count: not bound.holds(self.render(count)))
        return self.render(max(0, too_many - 1))

    def render(self, citations: int, *, quoted: bool = False) -> str:
        found, answer, passages, cited = self._found, self._answer, "", ""
        if self._passages:
            block = framing.block(framing.OPENING, self._passages)
            passages = "\n".join(filter(None, (wording.PASSAGES, block, self._passages_closing)))
        # If the engine is not sure, a model is rarely right either, so show the passages of the output first.
        is_unsure = bool(passages) and found.passages is not None and found.passages.confidence < LIKELY
        before, after = ([passages], []) if is_unsure else ([], [passages])
        if found.excerpts:
            omitted, support = len(found.excerpts) - citations, found.support or "cited"
            is_shown: Callable[[Excerpt], bool] = found.passages.quotes if found.passages else lambda _: False
            cited = wording.citations(
                found.excerpts[:citations], quoted=quoted, omitted=omitted, support=support, is_shown=is_shown
            )
        said = f"{wording.UNSUPPORTED}\n{framing.block(framing.OPENING, found.unsupported)}" if found.unsupported else ""
        ours = "\n\n".join(filter(None, (self._closing, cited, *after, said)))
        # The answer goes into a block if there are words of ours around it. Alone, it is everything below the first line.
        is_framed = bool(answer) and (bool(self._before or before or ours) or framing.imitates(answer))
        shown = framing.block(framing.OPENING, answer) if is_framed else answer
        body = "\n\n".join([*self._before, *before, "\n".join(filter(None, (shown, ours)))])
        return encoding.clean(wording.abstract(self._tool, self._handle, self._strategy, body))


def _split_closing(found: Extraction) -> tuple[str, str]:
    """The passages of the built-in engine, and its last line, which is ours: it says how many records match."""
    if not _is_by_engine(found):
        return found.text, ""
    passages, _, closing = found.text.rpartition("\n")
    return passages, closing


def format_snippets(kept: Kept, found: Extraction, bound: Bound, refit: Refit | None = None) -> Page:
    """The answer of `get_tool_output` in mode `extract`: the snippets that fit into the bound, and how many did not."""
    every = snippets = _list_snippets(found)
    found = _limit_unsupported(found, bound, lambda found: _json(found, every, 0))
    room = bound.least_bytes
    while not bound.holds(shown := _json(found, snippets, _count_omitted(every, snippets))) and snippets:
        if refit and _has_passages(found) and room >= _MIN_REFITTED_BYTES:
            room = min(room * 3 // 4, room * bound.least_bytes // len(shown))
            found = refit(found, room)
            snippets = _list_snippets(found)
        else:
            snippets = snippets[:-1]
    if found.strategy == "truncate":
        omitted = _count_omitted(every, snippets)
        shown = _shorten(found.text, bound, lambda text: _json(replace(found, text=text), snippets, omitted))
    return Page(shown, kept.id)


def _list_snippets(found: Extraction) -> list[dict[str, Any]]:
    others = (each for each in (found.passages.excerpts if found.passages else ()) if each not in found.excerpts)
    return [*map(_snippet, found.excerpts), *({**_snippet(each), "found_by": BUILTIN} for each in others)]


def _count_omitted(every: Sequence[dict[str, Any]], shown: Sequence[dict[str, Any]]) -> int:
    """How many of the excerpts are not shown at all."""
    spans = [(each["start_byte"], each["end_byte"]) for each in shown]
    return sum(not any(start < each["end_byte"] and each["start_byte"] < end for start, end in spans) for each in every)


def _json(found: Extraction, snippets: Sequence[dict[str, Any]], omitted: int) -> str:
    result: dict[str, Any] = {
        "snippets": snippets,
        "source_hash": found.source_hash,
        "source_size_bytes": found.source_size_bytes,
        "chunks_searched": found.chunks_searched,
        "chunks_total": found.chunks_total,
        "confidence": round(found.confidence, 3),
    }
    if found.is_nearest or (not found.found and not snippets and found.chunks_searched == found.chunks_total):
        result["no_match_reason"] = NOT_FOUND
    if omitted:
        result |= {"snippets_omitted": omitted, "hint": _SNIPPETS_OMITTED}
    if found.decoding:
        result |= {"decoding": found.decoding, "note": wording.decoding(found.decoding)}
    if found.strategy == "truncate":
        result["truncated"] = encoding.clean(found.text)
    if found.warnings:
        result["warnings"] = list(found.warnings)
    if found.unsupported:
        result["unsupported"] = encoding.clean(found.unsupported)
    return msgspec.json.encode(result).decode()


def _snippet(excerpt: Excerpt) -> dict[str, Any]:
    places = ("start_byte", "end_byte", "chunk_index", "start_char", "end_char", "start_line", "end_line")
    return {"text": encoding.clean(excerpt.text), **{name: getattr(excerpt, name) for name in places}}
