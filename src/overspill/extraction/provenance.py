"""Check quotes against the stored bytes: a quote that they do not contain does not count.

Each is searched for as given, then in other spellings; first where it came from, then everywhere. An excerpt never repeats the
quote: it shows the stored text where the quote was found.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from overspill.extraction import spelling
from overspill.extraction.chunks import Span
from overspill.reading.positions import View
from overspill.store.protocols import Reader
from overspill.text.encoding import clean, decode, encode
from overspill.text.lines import join_spans
from overspill.text.regex import regex
from overspill.types import Excerpt

_MIN_LOOSE_CHARS = 8  # a shorter quote is not searched for in other spellings
_MAX_BATCH_CHARS = 32 * 1024  # the total for all quotes in one search
_MAX_PASSES = 8  # passes over the document in one search; a quote that none of them finds counts as missing
_MAX_CHAR_BYTES = 4
_MAX_PATTERN_CHARS = 4000  # the pattern for a longer quote would take too much memory
_MARKS = "\"'`“”‘’"
_NUMBERED = regex(r"(?i)(?:L|line )?\d{1,9}(?: ?[:|]|-|\t) ?(.+)")
_ADJOINING = regex(rb"[ \t]*+(?:(?:\r\n|\n|\r)[ \t]*+)?")
_MAX_GAP_BYTES = 200
_PIECE_BYTES = 4 * 1024 * 1024

_Wanted: TypeAlias = dict[str, bytes]
"""The text that identifies a match -> the pattern that finds it."""


class ModelQuote(Struct, frozen=True):
    """A quote in a model's answer. `scope`: the chunk or the passage that the model was shown."""

    text: str
    scope: Span | None = None


class Located(Struct, frozen=True):
    excerpts: tuple[Excerpt, ...] = ()
    quotes: int = 0
    missing: int = 0
    """How many of the quotes were not found in the document."""


def locate(reader: Reader, quotes: Sequence[ModelQuote], chunks: Sequence[Span] = (), cited: Sequence[Span] = ()) -> Located:
    """Find quotes in the document. Blocks. The number of quotes hardly matters for the time. `cited`: places already known."""
    found: dict[ModelQuote, Span] = {}
    scopes: dict[Span, list[ModelQuote]] = {}
    for quote in quotes:
        if quote.scope is not None:
            scopes.setdefault(quote.scope, []).append(quote)
    for scope, asked in scopes.items():
        for quote, place in _search(reader.read(*scope), asked).items():
            found[quote] = Span(scope.start + place.start, scope.start + place.end)
    if rest := [quote for quote in quotes if quote not in found]:
        found |= _search(reader.buffer(), rest)
    starts, numbers = [chunk.start for chunk in chunks], {chunk: number for number, chunk in enumerate(chunks)}

    def find_chunk(place: Span, scope: Span | None = None) -> int:
        """The chunk that the quote came from, or the last one that begins before the place."""
        if scope is not None and scope in numbers and scope.start <= place.start < scope.end:
            return numbers[scope]
        return max(bisect_right(starts, place.start) - 1, 0)

    known = [(place, find_chunk(place)) for place in dict.fromkeys(cited)]
    places = _merge_places(reader, [*known, *((place, find_chunk(place, quote.scope)) for quote, place in found.items())])
    total, missing = len(set(quotes)), len(set(quotes)) - len(found)
    return Located(read_excerpts(reader, places), total + len(known), missing)


def read_excerpts(reader: Reader, places: Iterable[tuple[Span, int]]) -> tuple[Excerpt, ...]:
    """The stored text of spans, each with its chunk's number, in document order, with positions in every unit."""
    view, excerpts = View(reader), list[Excerpt]()
    for (start, end), chunk in sorted(places):
        text, first = decode(reader.read(start, end)), view.char_at(start)
        excerpts.append(
            Excerpt(
                text=text,
                start_byte=start,
                end_byte=end,
                start_char=first,
                end_char=first + len(text),
                start_line=view.line_at(start),
                end_line=view.line_at(max(start, end - 1)),
                chunk_index=chunk,
            )
        )
    return tuple(excerpts)


def _search(data: bytes | memoryview, quotes: Sequence[ModelQuote]) -> dict[ModelQuote, Span]:
    """The places of quotes. Searches in rounds, from exact to loose matching, each for the quotes that are still missing."""
    found: dict[ModelQuote, Span] = {}
    readings: tuple[tuple[Callable[[str], str], Callable[..., dict[str, Span]]], ...] = (
        (str, _find_exactly),
        (_strip_marks, _find_exactly),
        (_simplify, _find_in_any_spelling),
        (lambda text: _simplify(_strip_marks(text)), _find_in_any_spelling),
    )
    for reading, find in readings:
        wanted = {quote: text for quote in quotes if quote not in found and (text := reading(quote.text))}
        places = find(data, dict.fromkeys(wanted.values()))
        found |= {quote: places[text] for quote, text in wanted.items() if text in places}
    return found


def _strip_marks(text: str) -> str:
    """Remove quotation marks or a line number that the model added. Empty if it added neither."""
    if text[0] in _MARKS and text[-1] in _MARKS:
        return text.strip(_MARKS)
    found = _NUMBERED.fullmatch(text)
    return found[1] if found else ""


def _simplify(text: str) -> str:
    reduced = spelling.simplify(text)
    return reduced if _MIN_LOOSE_CHARS <= len(reduced) <= _MAX_PATTERN_CHARS else ""


def _find_exactly(data: bytes | memoryview, texts: Iterable[str]) -> dict[str, Span]:
    if isinstance(data, memoryview):
        short = {text: spelling.escape_literal(text) for text in texts if len(text) <= _MAX_PATTERN_CHARS}
        found = _find_places(data, short, decode)
        for text in texts:
            if len(text) > _MAX_PATTERN_CHARS:
                size = len(encode(text))
                for low in range(0, len(data), _PIECE_BYTES):
                    if inside := _find_in_order(bytes(data[low : low + _PIECE_BYTES + size]), [text]):
                        found[text] = Span(low + inside[text].start, low + inside[text].end)
                        break
        return found
    return _find_in_order(data, texts)


def _find_in_order(data: bytes, texts: Iterable[str]) -> dict[str, Span]:
    """The places of texts. Quotes mostly come in document order, so each search starts where the last one ended."""
    found: dict[str, Span] = {}
    reached = 0
    for text in texts:
        needle = encode(text)
        start = data.find(needle, reached)
        if start < 0:
            start = data.find(needle, 0, reached + len(needle))
        if start >= 0:
            reached = start + len(needle)
            found[text] = Span(start, reached)
    return found


def _find_in_any_spelling(data: bytes | memoryview, texts: Iterable[str]) -> dict[str, Span]:
    wanted = {text: spelling.build_pattern(text) for text in texts}
    return _find_places(memoryview(data), wanted, lambda found: spelling.simplify(clean(decode(found))))


def _find_places(data: memoryview, wanted: _Wanted, recognise: Callable[[bytes], str]) -> dict[str, Span]:
    """The places of texts, each found once. A search misses texts that overlap a match, so the next one begins near matches."""
    found: dict[str, Span] = {}
    whole = (Span(0, len(data)),)
    for batch in _split_into_batches(wanted):
        spans, passes = whole, 1
        while batch:
            passed = _search_once(data, spans, batch, recognise)
            found |= passed
            batch = {text: pattern for text, pattern in batch.items() if text not in passed}
            if passed:
                spans = _find_surroundings(passed.values(), max(map(len, batch), default=0), len(data))
            elif spans is not whole and passes < _MAX_PASSES:
                spans, passes = whole, passes + 1
            else:
                break
    return found


def _find_surroundings(places: Iterable[Span], chars: int, end: int) -> tuple[Span, ...]:
    """Each place, extended to contain any quote of `chars` characters that overlaps it."""
    margin = chars * _MAX_CHAR_BYTES
    around = ((max(place.start - margin, 0), min(place.end + margin, end)) for place in places)
    return tuple(Span(*each) for each in join_spans(around))


def _search_once(data: memoryview, spans: Sequence[Span], wanted: _Wanted, recognise: Callable[[bytes], str]) -> dict[str, Span]:
    found: dict[str, Span] = {}
    seen: set[bytes] = set()
    for match in spelling.find_matches(wanted.values(), data, spans):
        start, end = match.span()
        text = bytes(data[start:end])
        if text in seen:
            continue
        seen.add(text)
        name = recognise(text)
        if name in wanted:
            found.setdefault(name, Span(start, end))
            if len(found) == len(wanted):
                break
    return found


def _split_into_batches(wanted: _Wanted) -> Iterator[_Wanted]:
    """Batches of texts for one search, longest first: of two texts with the same beginning, the longer must be tried first."""
    batch: _Wanted = {}
    size = 0
    for text in sorted(wanted, key=len, reverse=True):
        if batch and size + len(text) > _MAX_BATCH_CHARS:
            yield batch
            batch, size = {}, 0
        batch[text] = wanted[text]
        size += len(text)
    if batch:
        yield batch


def _merge_places(reader: Reader, places: list[tuple[Span, int]]) -> list[tuple[Span, int]]:
    """Sorts places in document order, and merges those that overlap or are on neighbouring lines."""
    merged: list[tuple[Span, int]] = []
    for place, chunk in sorted(places):
        if merged:
            before, first = merged[-1]
            gap = place.start - before.end
            if gap <= 0 or (gap <= _MAX_GAP_BYTES and _ADJOINING.fullmatch(reader.read(before.end, place.start))):
                merged[-1] = Span(before.start, max(before.end, place.end)), first
                continue
        merged.append((place, chunk))
    return merged
