"""What the cutters find: records, the labels above them, and the runs of records that are tables.

Positions count bytes. They are kept in arrays, because an output can have a million records.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from functools import cached_property
from mmap import mmap
from operator import attrgetter
from typing import TypeAlias

from msgspec import Struct

from overspill.tables.table import FoundTable, Omission, RowFormat

Source: TypeAlias = bytes | mmap
"""The stored bytes."""
NO_LABEL = -1
RESUMED = -2
"""The label of rows in a later part, if their header is in the first part."""
_MAX_COUNTED_AT_ONCE = 1 << 16
"""How many records to count in one call, which blocks other threads."""
_FIRST = attrgetter("first")


class Table(Struct, frozen=True):
    """Records `first`…`last` - 1 are the rows of one table. `header` is their label, or -1 if no line names their fields."""

    first: int
    last: int
    header: int
    rows: RowFormat
    omissions: tuple[Omission, ...] = ()


class Outline:
    """Records in document order, without overlaps. A label may be inside a record or between records."""

    def __init__(self) -> None:
        self.starts = array("q")
        self.ends = array("q")
        self.under = array("q")
        self.label_starts = array("q")
        self.label_ends = array("q")
        self.label_parents = array("q")
        self.tables: list[Table] = []
        """In document order, not nested."""
        self.uncounted: set[int] = set()
        """Labels of arrays whose elements are not all separate records. The index of an element is then unknown."""
        self.base = -1
        """The label above everything cut next: the member that contains an embedded text."""
        self.header = NO_LABEL
        """The label of rows until a header is found: RESUMED in a part that continues a table."""

    def __len__(self) -> int:
        return len(self.starts)

    def record(self, start: int, end: int, under: int = -1) -> None:
        if start < end:
            self.starts.append(start)
            self.ends.append(end)
            self.under.append(under if under != NO_LABEL else self.base)

    def add_records(self, starts: array[int], ends: array[int], under: int = -1) -> None:
        self.starts.extend(starts)
        self.ends.extend(ends)
        self.under.extend(array("q", [under if under != NO_LABEL else self.base]) * len(starts))

    def label(self, start: int, end: int, parent: int = -1) -> int:
        """Add labels in the order of their starts. `parent` is the label above this one."""
        self.label_starts.append(start)
        self.label_ends.append(end)
        self.label_parents.append(parent if parent >= 0 else self.base)
        return len(self.label_starts) - 1

    def add_table(self, found: FoundTable, under: int = -1) -> None:
        """Adds its rows as records below its header, or below the header of the table it continues."""
        header, first = self.label(*found.header, under) if found.header else under, len(self)
        self.add_records(found.starts, found.ends, header)
        label = header if found.header or header == RESUMED else NO_LABEL
        self.tables.append(Table(first, len(self), label, found.format, tuple(found.omissions)))

    def extend(self, part: Outline) -> None:
        """Adds the records of a later part, whose labels are numbered from zero, and joins a table that continues in it."""
        records, labels = len(self), len(self.label_starts)
        resumed = self.tables[0] if len({table.header for table in self.tables}) == 1 else None

        def shift(label: int) -> int:
            return label + labels if label >= 0 else resumed.header if resumed and label == RESUMED else NO_LABEL

        self.starts.extend(part.starts)
        self.ends.extend(part.ends)
        self.under.extend(map({label: shift(label) for label in set(part.under)}.__getitem__, part.under))
        self.label_starts.extend(part.label_starts)
        self.label_ends.extend(part.label_ends)
        self.label_parents.extend(map(shift, part.label_parents))
        self.uncounted.update(label + labels for label in part.uncounted)
        for table in part.tables:
            first, last = table.first + records, table.last + records
            if table.header != RESUMED:
                self.tables.append(Table(first, last, shift(table.header), table.rows, table.omissions))
            elif resumed:
                first = self.tables.pop().first if self.tables[-1].last == first else first
                self.tables.append(Table(first, last, resumed.header, resumed.rows, resumed.omissions))

    def record_at(self, position: int) -> int:
        found = bisect_right(self.starts, position) - 1
        return found if found >= 0 and position < self.ends[found] else -1

    def label_at(self, position: int) -> int:
        found = bisect_right(self.label_starts, position) - 1
        return found if found >= 0 and position < self.label_ends[found] else -1

    def record_from(self, position: int) -> int:
        """The first record that begins at or after a position."""
        return bisect_left(self.starts, position)

    def lineage(self, record: int) -> list[int]:
        """The labels above a record, innermost first."""
        above: list[int] = []
        label = self.under[record]
        while label >= 0:
            above.append(label)
            label = self.label_parents[label]
        return above

    @cached_property
    def extents(self) -> list[int]:
        """The number of records below each label; a label precedes those below it. Call this once everything is cut."""
        direct: Counter[int] = Counter()
        for start in range(0, len(self), _MAX_COUNTED_AT_ONCE):
            direct.update(self.under[start : start + _MAX_COUNTED_AT_ONCE])
        extents = [direct[label] for label in range(len(self.label_starts))]
        for label in range(len(extents) - 1, -1, -1):
            if (parent := self.label_parents[label]) >= 0:
                extents[parent] += extents[label]
        return extents

    def table_of(self, record: int) -> Table | None:
        if not self.tables:
            return None
        found = bisect_right(self.tables, record, key=_FIRST) - 1
        return self.tables[found] if found >= 0 and record < self.tables[found].last else None
