"""Cuts a reading into records: all of it, or only those parts of a large output that a question needs."""

from __future__ import annotations

from mmap import ACCESS_COPY, mmap
from threading import Lock

from overspill.lexical import reading
from overspill.lexical.kinds import LINES, recognise
from overspill.lexical.kinds.kind import Kind
from overspill.lexical.kinds.lines import between_characters
from overspill.lexical.locate import Visible
from overspill.lexical.outline import NO_LABEL, RESUMED, Outline, Source
from overspill.tables.table import Text
from overspill.text import pieces

COLOUR_START = b"\x1b["
_MAX_EMBEDDED_DEPTH = 4
_ESCAPED_LETTER = b"\\u"
PART_BYTES = 16_384
_WINDOW_BYTES = 4_096
"""How far to look for a place where a record begins."""
_LOOK_BACK_BYTES = 2 * PART_BYTES
_MAX_HELD_PARTS = 1_024
"""How many parts to keep. Beyond this, all are dropped and cut again when needed."""
_SOFT_BREAKS = (b"\\n", b" ", b",")


class Cutting:
    """Appends records to an outline. Overwrites escapes in embedded texts, in `writable` (the same text) or in a copy."""

    def __init__(self, text: Text, kind: Kind, fill: bytes, writable: bytearray | mmap | None) -> None:
        self.text = text
        self.kind = kind
        self.fill = fill
        self.outline = Outline()
        self._writable = writable

    def cut(self, start: int, end: int, *, is_inside_string: bool = False) -> Outline:
        if is_inside_string:
            self._cut_embedded(start, end, 1)
        else:
            self._cut(self.kind, start, end, 0)
        self.outline.tables.sort(key=lambda table: table.first)
        return self.outline

    def _cut(self, kind: Kind, start: int, end: int, depth: int) -> None:
        kind.cut(self.text, start, end, self.outline, lambda a, b: self._cut_embedded(a, b, depth + 1))

    def _cut_embedded(self, start: int, end: int, depth: int) -> None:
        if depth >= _MAX_EMBEDDED_DEPTH:
            self._cut(LINES, start, end, depth)
            return
        if self.fill:
            if self._writable is None:
                self.text = self._writable = bytearray(self.text)
            text = self._writable
            text[start:end] = reading.unescape(bytes(text[start:end]), self.fill)
            if text.find(_ESCAPED_LETTER, start, end) >= 0 and recognise(text, start, end).traits.has_string_escapes:
                text[start:end] = reading.spell_letters(text, start, end, self.fill)
        self._cut(recognise(self.text, start, end), start, end, depth)


def cut_whole(source: Source, kind: Kind) -> tuple[Text, Outline, bytes]:
    """The text to search, its records, and its padding byte. The text is a copy only if something has to be overwritten."""
    read = kind.read or (reading.strip_colours if source.find(COLOUR_START) >= 0 else None)
    fill = reading.find_filler(source) if read else b""
    text = read(source, len(source), fill) if read and fill else source
    cutting = Cutting(text, kind, fill, text if isinstance(text, bytearray) else None)
    outline = cutting.cut(0, len(source))
    return cutting.text, outline, fill


class Parts:
    """Part 0 begins at the start, and every other part where a record seems to begin. Safe to use from several threads.

    Positions are those of the source. If the reading differs from the stored bytes, it is as long as the source, but only pages
    that parts were written to take memory.
    """

    def __init__(self, source: Source, kind: Kind) -> None:
        self.count = max(1, -(-len(source) // PART_BYTES))
        self._source = source
        self._kind = kind
        self._held: dict[int, Outline] = {}
        self._starts: dict[int, tuple[int, bool]] = {}
        self._lock = Lock()
        self.fill = b""
        if kind.read or kind.traits.has_string_escapes or pieces.find(source, COLOUR_START) >= 0:
            self.fill = reading.find_filler(source)
        self._reading = self._make_reading()
        self.visible = Visible(len(source), kind.find_hidden(source) if kind.find_hidden else ())

    def _make_reading(self) -> mmap | None:
        return mmap(-1, len(self._source), access=ACCESS_COPY) if self.fill else None

    def span(self, number: int) -> tuple[int, int]:
        return self._start(number)[0], self._start(number + 1)[0]

    def part_at(self, position: int) -> int:
        number = position // PART_BYTES
        return number if position >= self._start(number)[0] else number - 1

    def read(self, numbers: list[int]) -> tuple[Text, Outline]:
        """The text that holds these parts, and their records in the order of the parts."""
        joined = Outline()
        with self._lock:
            if len(self._held.keys() | numbers) > _MAX_HELD_PARTS:
                # Answers that are being written hold on to their own text.
                self._held, self._reading = {}, self._make_reading()
            for number in numbers:
                if number not in self._held:
                    self._held[number] = self._cut(number)
                joined.extend(self._held[number])
            return self._reading or self._source, joined

    def _start(self, number: int) -> tuple[int, bool]:
        """Where a part begins, and whether a record surely begins there."""
        if number <= 0:
            return 0, True
        if number >= self.count:
            return len(self._source), True
        if number not in self._starts:
            at = number * PART_BYTES
            window = self._source[at : at + _WINDOW_BYTES]
            found = self._kind.find_start(window)
            soft = (at + place + len(mark) for mark in _SOFT_BREAKS if (place := window.find(mark)) >= 0)
            start = at + found if found >= 0 else next(soft, None) or between_characters(self._source, at)
            self._starts[number] = start, found >= 0
        return self._starts[number]

    def _cut(self, number: int) -> Outline:
        start, end = self.span(number)
        if self._reading:
            part: bytes | bytearray = self._source[start:end]
            if hidden := list(self.visible.list_hidden(start, end)):
                part = bytearray(part)
                for first, last in hidden:
                    part[first - start : last - start] = self.fill * (last - first)
            self._reading[start:end] = bytes((self._kind.read or reading.strip_colours)(part, len(part), self.fill))
        cutting = Cutting(self._reading or self._source, self._kind, self.fill, self._reading)
        if number and self._kind.traits.has_one_header:
            before = self._source[max(0, start - _LOOK_BACK_BYTES) : start].replace(b"\r", b"")
            cutting.outline.header = NO_LABEL if b"\n\n" in before else RESUMED
        is_inside_string = self._kind.traits.has_string_escapes and not self._start(number)[1]
        outline = cutting.cut(start, end, is_inside_string=is_inside_string)
        if self._kind.traits.has_string_escapes:
            # Parts can begin inside an array, so the rows of one table would look like several tables to join.
            outline.tables.clear()
            outline.uncounted.update(range(len(outline.label_starts)))
        return outline
