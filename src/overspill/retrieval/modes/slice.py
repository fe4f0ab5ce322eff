"""Mode `slice`: characters, lines, or what is around an anchor. Of an output that is not text: bytes, or lines of its text.

Mode `raw`: everything, from the beginning.
"""

from __future__ import annotations

from overspill import reading
from overspill.errors import BadRequest
from overspill.reading import Bound, Passage, Range
from overspill.retrieval.definitions import GetToolOutput, Slice, parse_range
from overspill.retrieval.modes import ExactMode
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.pages import (
    FOOTER_BYTES,
    Page,
    SpellCall,
    base64_page,
    binary_page,
    describe_place,
    make_page,
    passage_page,
    shrink,
)
from overspill.wording import retrieval as wording
from overspill.wording.names import tool_name


def spell_slice(stored: StoredOutput, range: Range) -> str:
    if range.unit == "lines":
        return _spell_call(stored, f'"lines": "{range.start}-{range.end}"')
    chars = (range.start, range.end)
    start, end = chars if range.unit == "chars" else (stored.view.char_at(range.start), stored.view.char_at(range.end))
    return _spell_call(stored, f'"start": {start}, "length": {end - start}')


def _spell_bytes(stored: StoredOutput, range: Range) -> str:
    return _spell_call(stored, f'"start": {range.start}, "length": {range.end - range.start}')


def _spell_call(stored: StoredOutput, part: str) -> str:
    return f'{tool_name("get_tool_output")}(id="{stored.shown_id}", mode="slice", slice={{{part}}})'


def _read(stored: StoredOutput, asked: GetToolOutput, bound: Bound) -> Page:
    part = asked.slice or Slice()
    # Beside an anchor, models write a start of 0 that says nothing.
    nothing = (None,) if part.lines is not None else (None, 0)
    ways = [name for name in ("lines", "anchor", "start") if getattr(part, name) not in nothing]
    if len(ways) > 1:
        raise BadRequest(f"slice has {' and '.join(ways)}. Give one of them: lines, anchor or start.")
    return _read_bytes(stored, part, bound) if stored.kept.media == "binary" else _read_text(stored, part, bound)


def decoded_page(stored: StoredOutput, first: int, last: int | None, bound: Bound, spell: SpellCall) -> Page:
    """Lines of the text in an output that is not plain text."""
    text = stored.decoded()
    notes = wording.decoding_notes(text.decoding)
    passage = reading.lines(text.reader, text.positions, first, last, shrink(bound, FOOTER_BYTES + len("\n".join(notes))))
    if passage.next is not None:
        notes = [describe_place(passage, [spell(stored, passage.next)]), *notes]
    return make_page(stored, passage.text, notes)


def _spell_decoded(stored: StoredOutput, range: Range) -> str:
    if range.unit == "lines":
        return spell_slice(stored, range)
    # Only `grep` continues inside a line of decoded text: a start and a length are those of stored bytes.
    search = 'mode="grep", pattern=".", context=0'
    return f'{tool_name("get_tool_output")}(id="{stored.kept.artifact_id}", {search}, from={range.start})'


def _read_bytes(stored: StoredOutput, part: Slice, bound: Bound) -> Page:
    if part.lines is not None:
        return decoded_page(stored, *parse_range("lines", part.lines), bound, _spell_decoded)
    if part.start is None:
        return binary_page(stored, ("get_tool_output",))
    end = stored.reader.size if part.length is None else part.start + part.length
    return base64_page(stored, part.start, end, bound, _spell_bytes)


def _read_text(stored: StoredOutput, part: Slice, bound: Bound) -> Page:
    reader, view = stored.reader, stored.view
    if part.lines is not None:
        first, last = parse_range("lines", part.lines)
        return passage_page(stored, bound, lambda bound: reading.lines(reader, view, first, last, bound), spell_slice)
    anchor = part.anchor
    if anchor is None:
        start = part.start or 0
        return passage_page(stored, bound, lambda bound: reading.chars(reader, view, start, part.length, bound), spell_slice)

    def around(bound: Bound) -> Passage:
        return reading.around(reader, view, anchor, bound, window=part.window, match_index=part.match_index)

    return passage_page(stored, bound, around, spell_slice, located=True)


def _read_all(stored: StoredOutput, asked: GetToolOutput, bound: Bound) -> Page:
    return passage_page(stored, bound, lambda bound: reading.raw(stored.reader, stored.view, bound), spell_slice)


RAW = ExactMode(read=_read_all)
SLICE = ExactMode(read=_read, reads_running=True, reads_binary=True)
