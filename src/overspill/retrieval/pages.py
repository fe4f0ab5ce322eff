"""One bounded answer about one stored output: the content first, then how to get the rest."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from overspill import reading
from overspill.decoding import HEAD_BYTES, describe
from overspill.errors import BadRequest
from overspill.gate.replies import ReplyDraft
from overspill.reading import Bound, Passage, Range
from overspill.reading.query import query
from overspill.record.events import name_type
from overspill.retrieval.output import StoredOutput
from overspill.text import encoding
from overspill.types import Block
from overspill.wording import framing
from overspill.wording import retrieval as wording

FRAME_BYTES = 48  # reserved for the lines around stored text
FOOTER_BYTES = 512  # reserved for the lines around stored text and the note that says how to continue

SpellCall: TypeAlias = Callable[[StoredOutput, Range], str]
"""The tool call that returns a range of an output, as a model would write it."""
SpellContinuation: TypeAlias = Callable[[int], str]
"""The same call, starting at a byte or character."""


class Page(Struct, frozen=True):
    """The answer to a retrieval, and which stored bytes it shows."""

    text: str
    id: str = ""
    start: int = 0
    end: int = 0
    is_error: bool = False
    error_type: str = ""
    blocks: Sequence[Block] = ()
    """Content blocks that belong to the answer and are not text."""
    data: str | None = None
    """The stored text in the answer, if any. The other text is ours."""
    notes: tuple[str, ...] = ()
    """Our lines below the stored text."""
    drafts: Sequence[ReplyDraft] = ()
    """Alternatives to the text. The first one that fits is shown."""


def failure_page(error: Exception, text: str, id: str = "") -> Page:
    return Page(text, id, is_error=True, error_type=name_type(error))


def make_page(stored: StoredOutput, data: str, notes: Sequence[str] = (), start: int = 0, end: int = 0) -> Page:
    data = encoding.clean(data)
    return Page(framing.answer(data, notes), stored.kept.id, start, end, data=data, notes=tuple(notes))


def passage_page(
    stored: StoredOutput, bound: Bound, fetch: Callable[[Bound], Passage], spell: SpellCall, *, located: bool = False
) -> Page:
    """A page with a passage. A note says where it is if it was cut, or if the model cannot know its place (`located`)."""
    passage, notes = fetch(bound), list[str]()
    if passage.omitted or located or framing.imitates(passage.text):
        passage = fetch(shrink(bound, FOOTER_BYTES))
        rest = [spell(stored, range) for range in (passage.previous, passage.next) if range is not None]
        notes = [describe_place(passage, rest)]
    return make_page(stored, passage.text, notes, passage.start_byte, passage.end_byte)


def binary_page(stored: StoredOutput, tools: tuple[str, ...]) -> Page:
    """Describes the output to a reader who asked for text. `tools` are those available to the reader."""
    found = describe(stored.reader.read(0, HEAD_BYTES))
    return Page(stored.words.binary_message(stored.kept, found.what, tools, has_text=found.has_text), stored.kept.id)


def base64_page(stored: StoredOutput, first: int, end: int, bound: Bound, spell: SpellCall) -> Page:
    """Bytes that are not text, encoded as base64. A model gets them only if it asks for them."""
    max_bytes = max(1, (min(bound.bytes, bound.chars or bound.bytes) - FOOTER_BYTES) * 3 // 4)
    end = min(end, stored.reader.size)
    if not 0 <= first < end:
        raise BadRequest(f"There is no byte {first}: the output has {stored.reader.size} bytes, counted from 0.")
    cut = min(end, first + max_bytes)
    encoded = base64.b64encode(stored.reader.read(first, cut)).decode()
    text = f"[base64 of bytes {first}-{cut - 1} of {stored.reader.size}]\n{encoded}"
    if cut < end:
        text += f"\n\n[Next: {spell(stored, Range('bytes', cut, end))}]"
    return Page(text, stored.kept.id, first, cut)


def grep_page(stored: StoredOutput, pattern: str, bound: Bound, spell: SpellContinuation, **options: Any) -> tuple[Page, bool]:
    """The lines that match, and whether any do. `options` are those of `reading.grep`."""
    text = stored.decoded()
    notes = wording.decoding_notes(text.decoding)
    room = shrink(bound, FOOTER_BYTES + len(encoding.encode(pattern)) + len("\n".join(notes)))
    found = reading.grep(text.reader, text.positions, pattern, room, **options)
    searched = (found.searched_from, found.searched_to)
    total = text.positions.stored_bytes
    footer = wording.grep_place(found.hits, found.total, found.exact, searched, total, is_cut=found.is_cut)
    if found.next is not None:
        footer += f" Next: {spell(found.next)}"
    return make_page(stored, found.text, [f"[{footer}]", *notes]), bool(found.total)


def query_page(stored: StoredOutput, expression: str, start: int, bound: Bound, spell: SpellContinuation) -> Page:
    text = stored.decoded()
    notes = list(wording.decoding_notes(text.decoding))
    found = query(text.reader, expression, bound, start=start)
    if notes or found.next is not None or found.expanded or found.note or framing.imitates(found.text):
        room = FOOTER_BYTES + len(encoding.encode(expression)) + len("\n".join(notes))
        found = query(text.reader, expression, shrink(bound, room), start=start)
    notes += [f"[{found.note}]"] if found.note else []
    if found.expanded:
        notes.append(wording.EXPANDED)
    if found.text == "null":
        notes.append(wording.NULL)
    if found.next is not None:
        notes.append(wording.continuation(spell(found.next)))
    return make_page(stored, found.text, notes)


def decoded_page(
    stored: StoredOutput, lines: tuple[int, int | None], bound: Bound, spell: SpellCall, spell_inside: SpellContinuation
) -> Page:
    """Lines of decoded text. `spell_inside` continues inside a line: a range of bytes would be one of stored bytes."""
    text = stored.decoded()
    notes = wording.decoding_notes(text.decoding)
    passage = reading.lines(text.reader, text.positions, *lines, shrink(bound, FOOTER_BYTES + len("\n".join(notes))))
    if rest := passage.next:
        way = spell(stored, rest) if rest.unit == "lines" else spell_inside(rest.start)
        notes = [describe_place(passage, [way]), *notes]
    return make_page(stored, passage.text, notes)


def fetch_page(stored: StoredOutput, bound: Bound, fetch: Callable[[Bound], Page]) -> Page:
    """A page of a finished output, with a note if some of the output is missing."""
    return add_note(f"[{wording.incomplete(stored.kept)}]", bound, fetch) if stored.kept.missing else fetch(bound)


def add_note(note: str, bound: Bound, fetch: Callable[[Bound], Page]) -> Page:
    page = fetch(shrink(bound, len(note.encode()) + 2 + FRAME_BYTES))
    if page.data is None:
        return replace(page, text=f"{page.text}\n\n{note}")
    notes = (*page.notes, note)
    return replace(page, text=framing.answer(page.data, notes), notes=notes)


def shrink(bound: Bound, by_bytes: int) -> Bound:
    return Bound(max(1, bound.bytes - by_bytes), bound.chars and max(1, bound.chars - by_bytes))


def describe_place(passage: Passage, rest: list[str]) -> str:
    return wording.place(
        (passage.start_char, passage.end_char),
        (passage.first_line, passage.last_line),
        (passage.start_byte, passage.end_byte),
        passage.total,
        matches=passage.matches,
        omitted=passage.omitted,
        rest=rest,
    )
