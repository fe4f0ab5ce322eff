"""The index of one stored output: its reading and its outline. Queries scan the text, so it needs nothing else."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import cached_property
from itertools import accumulate, islice
from mmap import mmap
from sys import getsizeof
from typing import TypeVar, cast

from msgspec import Struct
from msgspec.structs import astuple

from overspill.lexical.cutting import COLOUR_START, PART_BYTES, Parts, cut_whole
from overspill.lexical.kinds import recognise
from overspill.lexical.kinds.kind import Kind, Traits
from overspill.lexical.locate import BLOCK_BYTES, Places, locate
from overspill.lexical.outline import Outline, Source, Table
from overspill.lexical.query import Term
from overspill.lexical.scan import TermSamples
from overspill.tables.table import Span, Text
from overspill.text.lines import count_line_ends, join_spans

T = TypeVar("T")

MAX_MEMORY = 256 * 1024 * 1024
MAX_WHOLE_BYTES = 4 << 20
"""A larger output is cut only where a question needs it."""
_MAX_PARTS = 48
"""Parts to cut for a question, besides the first and the last."""
_MAX_ROW_PARTS = 700
"""Parts to cut from the beginning if rows must be compared and not all can be."""
_MIN_BYTES_BESIDE = 1_024
"""A hit nearer to the edge of a part may belong with text in the next part."""
_HEAD_BYTES = 1 << 20
_LINE_BLOCK_BYTES = 1 << 11
_COLOURED_MEMORY_PER_BYTE = 5
_MEASURED_ELEMENTS = 64


class Work(Struct, frozen=True):
    """How much a search may do, counted in bytes. Results are the same on every machine, even a busy one."""

    read: int
    """How many bytes to scan for the words of the question, from the beginning of the output."""
    cut: int
    """How many bytes to cut into records and compare with the question: of the whole output, or of the parts with its words."""


QUICK = Work(32 << 20, 1 << 20)
"""For a reply that waits for the search: about a second of processor time."""


class _Output:
    """The facts about a stored output that do not depend on a question."""

    def __init__(self, source: Source, max_memory: int, kind: Kind | None) -> None:
        self.source = source
        self.max_memory = max_memory
        self.total_bytes = len(source)
        self.kind = kind or recognise(source, 0, self.total_bytes)
        coloured = source.find(COLOUR_START, 0, _HEAD_BYTES) >= 0
        cost = max(self.kind.traits.memory_per_byte, _COLOURED_MEMORY_PER_BYTE if coloured else 1)
        self.max_cut_bytes = max_memory // cost
        self.memory_bytes = min(self.total_bytes, self.max_cut_bytes) * cost

    @cached_property
    def lines(self) -> int:
        head = self.source[:_HEAD_BYTES]
        return max(1, (count_line_ends(head) + 1) * self.total_bytes // max(1, len(head)))

    @cached_property
    def line_ends(self) -> array[int]:
        """The number of line ends before each block. Saves counting from the beginning at each look-up."""
        blocks = range(0, self.total_bytes, _LINE_BLOCK_BYTES)
        return array(
            "q", accumulate((_count_line_ends(self.source, start, start + _LINE_BLOCK_BYTES) for start in blocks), initial=0)
        )

    @cached_property
    def parts(self) -> Parts:
        return Parts(self.source, self.kind)

    @cached_property
    def samples(self) -> TermSamples:
        return TermSamples(self.source, code=self.kind.traits.is_code, raw=True)


class Index:
    """Built on first use and reused for every query on the same output."""

    has_more = False
    """Whether parts that match the question were left out."""
    is_partial = False
    """Whether only some parts of the text were cut into records."""

    def __init__(self, output: _Output) -> None:
        self._output = output
        self.source = output.source
        self.total_bytes = output.total_bytes
        self.columns: dict[Table, list[str]] = {}
        """The column names of the tables that have been read."""
        self._remembered: dict[Hashable, object] = {}

    @property
    def memory_bytes(self) -> int:
        """An upper estimate of its memory once built, including everything it has remembered so far."""
        return self._output.memory_bytes + sum(map(estimate_memory, list(self._remembered.values())))

    @property
    def kind(self) -> str:
        return self._output.kind.name

    @cached_property
    def traits(self) -> Traits:
        return self._output.kind.traits

    @cached_property
    def lines(self) -> int:
        """An estimate of the number of lines, from the beginning of the source."""
        return self._output.lines

    def line_at(self, position: int) -> int:
        """The line of the source that contains a byte, counted from 1."""
        block = position // _LINE_BLOCK_BYTES
        return 1 + self._output.line_ends[block] + _count_line_ends(self.source, block * _LINE_BLOCK_BYTES, position)

    @cached_property
    def _build(self) -> tuple[Text, Outline, bytes]:
        return cut_whole(self.source, self._output.kind)

    def remember(self, read: Callable[..., T], *arguments: Hashable) -> T:
        """Caches `read(index, *arguments)`, as long as there is memory. The result must not depend on a question."""
        known, key = self._remembered, (read, arguments)
        if key not in known:
            known[key] = read(self, *arguments)
        return cast("T", known[key])

    def prepare(self, work: Work | None = None) -> None:
        """Builds the index now instead of on first use."""
        _ = self._build if self._is_cut_whole(work, compares_rows=False) else self._output.parts

    def focus(
        self,
        terms: tuple[Term, ...],
        *,
        find_places: Callable[[Index], list[int]] | None = None,
        compares_rows: bool,
        work: Work | None = None,
    ) -> Index:
        """The index to use for a question: this one or, for a large text, one of the parts with its terms or at these places."""
        if self.memory_bytes > self._output.max_memory:
            self._remembered = {}
        if self._is_cut_whole(work, compares_rows=compares_rows):
            return self
        output = self._output
        places = locate(self.source, output.parts.visible, terms, output.samples, self.traits)
        chosen = _choose_parts(output.parts, [*(self.remember(find_places) if find_places else ()), *places.best])
        if compares_rows:
            most = work.cut // PART_BYTES if work else _MAX_ROW_PARTS
            chosen.update(range(min(output.parts.count, most, output.max_cut_bytes // PART_BYTES)))
        return _PartialIndex(output, sorted(chosen), places)

    def _is_cut_whole(self, work: Work | None, *, compares_rows: bool) -> bool:
        most = self._output.max_cut_bytes
        if work or not compares_rows:
            most = min(most, work.cut if work else MAX_WHOLE_BYTES)
        return self.total_bytes <= most

    @property
    def spans(self) -> Sequence[Span]:
        """The spans of the text that were cut into records."""
        return ((0, self.total_bytes),)

    @cached_property
    def samples(self) -> TermSamples:
        return TermSamples(self.text, code=self.traits.is_code)

    @cached_property
    def text(self) -> Text:
        return self._build[0]

    @cached_property
    def outline(self) -> Outline:
        return self._build[1]

    @cached_property
    def fill(self) -> bytes:
        return self._build[2]


class _PartialIndex(Index):
    """The parts of a large output that matter to a question."""

    is_partial = True

    def __init__(self, output: _Output, numbers: list[int], places: Places) -> None:
        super().__init__(output)
        self._numbers = numbers
        self._spans = join_spans([output.parts.span(number) for number in numbers])
        blocks = places.telling
        held = ((start // BLOCK_BYTES, -(-end // BLOCK_BYTES)) for start, end in self._spans)
        self.has_more = places.is_cut or sum(
            bisect_left(blocks, last) - bisect_left(blocks, first) for first, last in held
        ) < len(blocks)

    @cached_property
    def _build(self) -> tuple[Text, Outline, bytes]:
        text, outline = self._output.parts.read(self._numbers)
        return text, outline, self._output.parts.fill

    @property
    def spans(self) -> Sequence[Span]:
        return self._spans

    @cached_property
    def samples(self) -> TermSamples:
        return self._output.samples


def build(data: bytes | memoryview | mmap, *, max_memory: int = MAX_MEMORY, kind: Kind | None = None) -> Index:
    """Indexes `data`, which must not change while the index is in use. An `mmap` is never copied whole. `kind`: if known."""
    if isinstance(data, memoryview):
        whole = data.obj
        data = whole if isinstance(whole, bytes | mmap) and len(whole) == data.nbytes else bytes(data)
    return Index(_Output(data, max_memory, kind))


def estimate_memory(value: object) -> int:
    """The memory of a value and everything it holds. For large containers, estimated from the first few elements."""
    size = getsizeof(value)
    if isinstance(value, dict):
        elements: Collection[object] = cast("dict[object, object]", value).items()
    elif isinstance(value, list | tuple | set | frozenset):
        elements = cast("Collection[object]", value)
    else:
        elements = astuple(value) if isinstance(value, Struct) else getattr(value, "__dict__", dict[str, object]()).values()
    measured = [estimate_memory(each) for each in islice(elements, _MEASURED_ELEMENTS)]
    return size + (sum(measured) * len(elements) // len(measured) if measured else 0)


def _choose_parts(parts: Parts, places: Iterable[int]) -> set[int]:
    """The parts at these places, best first, and the neighbour of each place near an edge. Always has the first and last part."""
    chosen: set[int] = set()
    for place in places:
        number = parts.part_at(place)
        start, end = parts.span(number)
        if place - start < _MIN_BYTES_BESIDE:
            chosen.add(number - 1)
        if end - place < _MIN_BYTES_BESIDE:
            chosen.add(number + 1)
        chosen.add(number)
        if len(chosen) >= _MAX_PARTS:
            break
    return {0, parts.count - 1, *(number for number in chosen if 0 <= number < parts.count)}


def _count_line_ends(source: Source, start: int, end: int) -> int:
    """The number of line ends in a span. A line end that straddles two spans belongs to the second, where it ends."""
    part = source[start:end]
    return count_line_ends(part) - (part[-1:] == b"\r" and source[end : end + 1] == b"\n")
