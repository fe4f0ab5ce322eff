"""The index of one stored output: its reading and its outline. Queries scan the text, so nothing else is kept."""

from __future__ import annotations

from array import array
from functools import cached_property
from itertools import accumulate
from mmap import mmap

from overspill.lexical import reading
from overspill.lexical.failures import Signs, read_signs
from overspill.lexical.kinds import LINES, recognise
from overspill.lexical.kinds.kind import Kind, Traits
from overspill.lexical.outline import Outline, Source, Text
from overspill.text.lines import count_line_ends

MAX_MEMORY = 256 * 1024 * 1024
_MAX_EMBEDDED_DEPTH = 4
_HEAD_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 12
_COLOURED_MEMORY_PER_BYTE = 5
_COLOUR_START = b"\x1b["
_ESCAPED_LETTER = b"\\u"


class Index:
    """Built on first use and reused for every query on the same output."""

    def __init__(self, source: Source, max_memory: int) -> None:
        self.source = source
        self.total_bytes = len(source)
        self._kind = recognise(source, 0, self.total_bytes)
        coloured = source.find(_COLOUR_START, 0, _HEAD_BYTES) >= 0
        cost = max(self.traits.memory_per_byte, _COLOURED_MEMORY_PER_BYTE if coloured else 1)
        self.searched_bytes = min(self.total_bytes, max_memory // cost)
        self.memory_bytes = self.searched_bytes * cost
        """An upper estimate of the memory it takes once it is built."""

    @property
    def kind(self) -> str:
        return self._kind.name

    @property
    def traits(self) -> Traits:
        return self._kind.traits

    @cached_property
    def lines(self) -> int:
        """An estimate of the number of lines, from the beginning of the source."""
        head = self.source[:_HEAD_BYTES]
        return max(1, (count_line_ends(head) + 1) * self.total_bytes // max(1, len(head)))

    def line_at(self, position: int) -> int:
        """The line of the source that contains a byte, counted from 1."""
        block = position // _BLOCK_BYTES
        return 1 + self._line_ends[block] + _line_ends(self.source, block * _BLOCK_BYTES, position)

    @cached_property
    def _line_ends(self) -> array[int]:
        """The number of line ends before each block, so that no look-up counts from the beginning."""
        blocks = range(0, self.total_bytes, _BLOCK_BYTES)
        return array("q", accumulate((_line_ends(self.source, start, start + _BLOCK_BYTES) for start in blocks), initial=0))

    @cached_property
    def _build(self) -> tuple[Text, Outline, bytes]:
        return _Cutting(self.source, self.searched_bytes, self._kind).done()

    @cached_property
    def signs(self) -> Signs:
        """Signs of failure, which do not depend on the question."""
        return read_signs(self)

    def prepare(self) -> None:
        """Build it now rather than on first use."""
        self._build  # noqa: B018 - a cached property  # pyright: ignore[reportUnusedExpression]

    @property
    def text(self) -> Text:
        return self._build[0]

    @property
    def outline(self) -> Outline:
        return self._build[1]

    @property
    def fill(self) -> bytes:
        return self._build[2]


def build(data: bytes | memoryview | mmap, *, max_memory: int = MAX_MEMORY) -> Index:
    """Indexes `data`, which must not change while the index is in use. An `mmap` is never copied whole."""
    if isinstance(data, memoryview):
        whole = data.obj
        return Index(whole if isinstance(whole, bytes | mmap) and len(whole) == data.nbytes else bytes(data), max_memory)
    return Index(data, max_memory)


def _line_ends(source: Source, start: int, end: int) -> int:
    """The line ends in a span. One that two blocks share belongs to the first."""
    part = source[start:end]
    shared = source[max(0, start - 1) : start + 1] == b"\r\n"
    return count_line_ends(part) - (shared and start < end)


class _Cutting:
    """Cuts a source into records in one pass, and makes a copy to read from only if something must be overwritten."""

    def __init__(self, source: Source, size: int, kind: Kind) -> None:
        self.text: Text = source
        self.size = size
        self.kind = kind
        self.fill = b""
        self.outline = Outline()

    def done(self) -> tuple[Text, Outline, bytes]:
        self._read()
        self._cut(self.kind, 0, self.size, 0)
        self.outline.tables.sort(key=lambda table: table.first)
        return self.text, self.outline, self.fill

    def _read(self) -> None:
        read = self.kind.read or (reading.strip_colours if self.text.find(_COLOUR_START, 0, self.size) >= 0 else None)
        if read and (fill := reading.find_filler(self.text)):
            self.text, self.fill = read(self.text, self.size, fill), fill

    def _cut(self, kind: Kind, start: int, end: int, depth: int) -> None:
        kind.cut(self.text, start, end, self.outline, lambda a, b: self._cut_embedded(a, b, depth + 1))

    def _cut_embedded(self, start: int, end: int, depth: int) -> None:
        if depth >= _MAX_EMBEDDED_DEPTH:
            self._cut(LINES, start, end, depth)
            return
        if self.fill:
            text = self.text if isinstance(self.text, bytearray) else bytearray(self.text)
            text[start:end] = reading.unescape(bytes(text[start:end]), self.fill)
            if text.find(_ESCAPED_LETTER, start, end) >= 0 and recognise(text, start, end).traits.has_string_escapes:
                text[start:end] = reading.spell_letters(text, start, end, self.fill)
            self.text = text
        self._cut(recognise(self.text, start, end), start, end, depth)
