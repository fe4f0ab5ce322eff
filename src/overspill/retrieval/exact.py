"""One bounded answer about one stored output, spelled for the tool that asked: content first, the way to the rest last."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from overspill import reading, wording
from overspill.errors import BadRequest
from overspill.reading import Bound, Passage, Range
from overspill.reading.query import query
from overspill.retrieval.definitions import GetArtifact, GetToolOutput, Slice, parse_range
from overspill.retrieval.outputs import StoredOutput
from overspill.text import encoding
from overspill.truncate import Cut
from overspill.types import Block
from overspill.wording import framing

_FRAME = 48  # bytes of the lines round stored text
_FOOTER = 512  # bytes set aside for those and for the line that says how to go on


class Page(Struct, frozen=True):
    """What a retrieval says, and which stored bytes it shows."""

    text: str
    id: str = ""
    start: int = 0
    end: int = 0
    is_error: bool = False
    blocks: Sequence[Block] = ()
    """What belongs to the answer and is not text."""
    data: str | None = None
    """The stored text in it, where there is any; all else is ours."""
    notes: tuple[str, ...] = ()
    """What we say below it."""


def artifact_page(stored: StoredOutput, asked: GetArtifact, bound: Bound) -> Page:
    """`get_artifact`: lines, bytes, a query, or everything from the beginning."""
    reader, view = stored.reader, stored.view
    if asked.query is not None:
        again = f'get_artifact(id="{stored.kept.artifact_id}", query={json.dumps(asked.query)}, from={{}})'
        return _query(stored, asked.query, asked.from_, bound, again)
    if stored.kept.media == "binary":
        if asked.bytes is None:
            return Page(wording.binary_message(stored.kept, "Binary output", ("get_artifact",)), stored.kept.id)
        first, last = parse_range("bytes", asked.bytes)
        return _base64(stored, first, last + 1, bound, _next_artifact)
    if asked.bytes is not None:
        first, last = parse_range("bytes", asked.bytes)
        return _fetch_page(stored, bound, lambda bound: reading.bytes_range(reader, view, first, last + 1, bound), _next_artifact)
    if asked.lines is not None or asked.start_line is not None or asked.end_line is not None:
        first, last = 1 if asked.start_line is None else asked.start_line, asked.end_line
        if asked.lines is not None:
            first, last = parse_range("lines", asked.lines)
        return _fetch_page(stored, bound, lambda bound: reading.lines(reader, view, first, last, bound), _next_artifact)
    return _fetch_page(stored, bound, lambda bound: reading.raw(reader, view, bound), _next_artifact)


def output_page(stored: StoredOutput, asked: GetToolOutput, bound: Bound) -> Page:
    """`get_tool_output` in its modes that need no model."""
    if stored.kept.media == "binary" and asked.mode != "query":
        part = asked.slice
        if asked.mode != "slice" or part is None or part.start is None:
            return Page(wording.binary_message(stored.kept, "Binary output", ("get_tool_output",)), stored.kept.id)
        end = stored.reader.size if part.length is None else part.start + part.length
        return _base64(stored, part.start, end, bound, _next_bytes)
    match asked.mode:
        case "query":
            if not asked.query:
                raise BadRequest("Query required for query mode.")
            again = f'get_tool_output(id="{stored.kept.artifact_id}", mode="query", query={json.dumps(asked.query)}, from={{}})'
            return _query(stored, asked.query, asked.from_, bound, again)
        case "grep":
            return _grep(stored, asked, bound)
        case "slice":
            return _slice(stored, asked.slice or Slice(), bound)
        case _:
            return _fetch_page(stored, bound, lambda bound: reading.raw(stored.reader, stored.view, bound), _next_slice)


def partial_page(stored: StoredOutput, asked: GetToolOutput, bound: Bound, note: str) -> Page:
    """The same of a tool that is still running."""
    return _add_note(note, bound, lambda bound: output_page(stored, asked, bound))


def truncated_page(stored: StoredOutput, cut: Cut) -> Page:
    return _answer(stored, cut.text)


def whole_page(stored: StoredOutput, bound: Bound, fetch: Callable[[Bound], Page]) -> Page:
    """A page of a finished output. One about an output that is not all there says so."""
    return _add_note(f"[{wording.incomplete(stored.kept)}]", bound, fetch) if stored.kept.missing else fetch(bound)


def _add_note(note: str, bound: Bound, fetch: Callable[[Bound], Page]) -> Page:
    page = fetch(_shrink(bound, len(note.encode()) + 2 + _FRAME))
    if page.data is None:
        return replace(page, text=f"{page.text}\n\n{note}")
    notes = (*page.notes, note)
    return replace(page, text=framing.answer(page.data, notes), notes=notes)


def _answer(stored: StoredOutput, data: str, notes: Sequence[str] = (), start: int = 0, end: int = 0) -> Page:
    data = encoding.clean(data)
    return Page(framing.answer(data, notes), stored.kept.id, start, end, data=data, notes=tuple(notes))


def _slice(stored: StoredOutput, asked: Slice, bound: Bound) -> Page:
    reader, view = stored.reader, stored.view
    ways = [name for name in ("lines", "anchor", "start") if getattr(asked, name) not in (None, 0)]
    if len(ways) > 1:
        raise BadRequest(f"slice has {' and '.join(ways)}. Give one of them: lines, anchor or start.")
    if asked.lines is not None:
        first, last = parse_range("lines", asked.lines)
        return _fetch_page(stored, bound, lambda bound: reading.lines(reader, view, first, last, bound), _next_slice)
    if asked.anchor is None:
        start = asked.start or 0
        return _fetch_page(stored, bound, lambda bound: reading.chars(reader, view, start, asked.length, bound), _next_slice)

    def around(bound: Bound) -> Passage:
        return reading.around(reader, view, asked.anchor, bound, window=asked.window, match_index=asked.match_index)

    return _fetch_page(stored, bound, around, _next_slice, located=True)


def _fetch_page(
    stored: StoredOutput,
    bound: Bound,
    fetch: Callable[[Bound], Passage],
    spell: Callable[[StoredOutput, Range], str],
    *,
    located: bool = False,
) -> Page:
    """As it is when it fits. When it does not, or when the model cannot know where it stands, a last line says so."""
    passage, notes = fetch(bound), list[str]()
    if passage.omitted or located or framing.imitates(passage.text):
        passage = fetch(_shrink(bound, _FOOTER))
        rest = [spell(stored, range) for range in (passage.previous, passage.next) if range is not None]
        notes = [_describe_place(passage, rest)]
    return _answer(stored, passage.text, notes, passage.start_byte, passage.end_byte)


def _shrink(bound: Bound, footer: int) -> Bound:
    return Bound(max(1, bound.bytes - footer), bound.chars and max(1, bound.chars - footer))


def _describe_place(passage: Passage, rest: list[str]) -> str:
    return wording.place(
        (passage.start_char, passage.end_char),
        (passage.first_line, passage.last_line),
        (passage.start_byte, passage.end_byte),
        passage.total,
        matches=passage.matches,
        omitted=passage.omitted,
        rest=rest,
    )


def _next_artifact(stored: StoredOutput, range: Range) -> str:
    last = range.end if range.unit == "lines" else range.end - 1
    unit = "bytes" if range.unit == "chars" else range.unit
    start, end = stored.view.char_span(range.start, range.end) if range.unit == "chars" else (range.start, last + 1)
    return f'get_artifact(id="{stored.kept.artifact_id}", {unit}="{start}-{end - 1}")'


def _next_slice(stored: StoredOutput, range: Range) -> str:
    if range.unit == "lines":
        how = f'"lines": "{range.start}-{range.end}"'
    else:
        chars = (range.start, range.end)
        start, end = chars if range.unit == "chars" else (stored.view.char_at(range.start), stored.view.char_at(range.end))
        how = f'"start": {start}, "length": {end - start}'
    return f'get_tool_output(id="{stored.kept.artifact_id}", mode="slice", slice={{{how}}})'


def _query(stored: StoredOutput, expression: str, start: int, bound: Bound, again: str) -> Page:
    """`again` is the call that goes on, with a place for the character to go on from."""
    found = query(stored.reader, expression, bound, start=start)
    if found.next is not None or found.expanded or found.note or framing.imitates(found.text):
        found = query(stored.reader, expression, _shrink(bound, _FOOTER + len(encoding.encode(expression))), start=start)
    notes = [f"[{found.note}]"] if found.note else []
    if found.expanded:
        notes.append(wording.EXPANDED)
    if found.text == "null":
        notes.append(wording.NULL)
    if found.next is not None:
        notes.append(wording.continuation(again.replace("from={}", f"from={found.next}")))
    return _answer(stored, found.text, notes)


def _grep(stored: StoredOutput, asked: GetToolOutput, bound: Bound) -> Page:
    if not asked.pattern:
        raise BadRequest("Pattern required for grep mode.")
    found = reading.grep(
        stored.reader,
        stored.view,
        asked.pattern,
        _shrink(bound, _FOOTER + len(encoding.encode(asked.pattern))),
        context=asked.context,
        ignore_case=asked.ignore_case,
        start_byte=asked.from_,
    )
    footer = wording.grep_place(
        found.hits, found.total, found.exact, (found.searched_from, found.searched_to), stored.reader.size
    )
    if found.next is not None:
        footer += f" Next: {_next_grep(stored, asked, found.next)}"
    return _answer(stored, found.text, [f"[{footer}]"])


def _next_grep(stored: StoredOutput, asked: GetToolOutput, start: int) -> str:
    options = f", context={asked.context}" + (", ignore_case=true" if asked.ignore_case else "")
    pattern = json.dumps(asked.pattern)
    return f'get_tool_output(id="{stored.kept.artifact_id}", mode="grep", pattern={pattern}{options}, from={start})'


def _next_bytes(stored: StoredOutput, range: Range) -> str:
    part = f'{{"start": {range.start}, "length": {range.end - range.start}}}'
    return f'get_tool_output(id="{stored.kept.artifact_id}", mode="slice", slice={part})'


def _base64(stored: StoredOutput, first: int, end: int, bound: Bound, spell: Callable[[StoredOutput, Range], str]) -> Page:
    """Bytes a model cannot read are given as base64, and only when it asks for them."""
    most = max(1, (min(bound.bytes, bound.chars or bound.bytes) - _FOOTER) * 3 // 4)
    end = min(end, stored.reader.size)
    if not 0 <= first < end:
        raise BadRequest(f"There is no byte {first}: the output has {stored.reader.size} bytes, counted from 0.")
    cut = min(end, first + most)
    encoded = base64.b64encode(stored.reader.read(first, cut)).decode()
    shown = f"[base64 of bytes {first}-{cut - 1} of {stored.reader.size}]\n{encoded}"
    if cut < end:
        shown += f"\n\n[Next: {spell(stored, Range('bytes', cut, end))}]"
    return Page(shown, stored.kept.id, first, cut)
