"""A table in a text: where its header and its rows are, and how a row is split into cells."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from mmap import mmap
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct, field

from overspill.text.humanize import count_noun, quote_line
from overspill.text.regex import regex

Text: TypeAlias = bytes | bytearray | mmap
"""Can be sliced, searched and matched without a copy."""
Span: TypeAlias = tuple[int, int]

ROW = "_row"
"""The column that says where a row is in the output."""
_NOT_IN_NAMES = regex(r"[^a-z0-9]+")
_MAX_NAME_CHARS = 40
_TOTAL = regex(r"(?i)\W*+(?:grand |sub-?)?(?:totals?|sums?|summe|gesamt|insgesamt)\b")
MAX_TABLES = 50
"""Tables of one output that are loaded, the first ones. The last of them says that there are more, so look for one more."""


class Unreadable(Exception):
    """A table cannot be read, or not whole."""


class Row(NamedTuple):
    """A row of a table with its cells by the names of their columns."""

    where: int | str
    """Its line, its number, the byte at which it begins, or its JSON pointer."""
    span: Span
    cells: dict[str, Any] | None
    """None if it cannot be read."""
    extra: str | None = None
    """Cells beyond the names, if there are any."""


class RowFormat(Struct, frozen=True):
    """How the rows of one table are written. It is found in the beginning of a table and splits any of its rows."""

    names: tuple[str, ...] = ()
    """Of its columns, each once: what its header says, or `column1` … where it says nothing."""

    def split(self, row: str) -> list[str]:
        """The cells of a row, without what is around them. As many as it has: fewer or more than names if it is uneven."""
        raise NotImplementedError

    def read(self, where: int, span: Span, text: Text) -> Row:
        cells = self.split(bytes(text[span[0] : span[1]]).decode("utf-8", "replace").replace("\0", ""))
        named: dict[str, Any] = {name: cell or None for name, cell in zip(self.names, cells, strict=False)}
        extra = self.join(cells[len(self.names) :]) if len(cells) > len(self.names) else None
        return Row(where, span, named if cells else None, extra)

    def join(self, cells: list[str]) -> str:
        return "|".join(cells)


class JsonRows(RowFormat, frozen=True):
    """Rows that are JSON objects, which name their fields themselves."""

    are_siblings: bool = False
    """Whether they are the rows around longer ones that are cut."""
    are_lists: bool = False
    """Whether they are the rows of several lists, whose keys are above them."""


class Omission(Struct, frozen=True):
    """What a reader left out, or could not read, for people: "2 rows that the output does not show"."""

    count: int
    what: str
    noun: str = "row"


class Tally:
    """What is to be said of rows besides their cells, counted as they are read: in one way for cards, SQL and the engine."""

    def __init__(self, columns: int | None, rows: Iterable[Sequence[str | None]] = ()) -> None:
        """`columns`: None if rows may have any number of cells."""
        self.unread = self.uneven = 0
        self._columns = columns
        self._last: Sequence[str | None] = ()
        for cells in rows:
            self.add(cells)

    def add(self, cells: Sequence[str | None]) -> None:
        self.unread += not cells
        self.uneven += bool(cells) and len(cells) != (self._columns or len(cells))
        self._last = cells

    def describe(self, quote: Callable[[str], str] = quote_line) -> Iterator[str]:
        if self.unread:
            yield f"{count_noun(self.unread, 'row')} could not be read"
        if self.uneven:
            yield f"{count_noun(self.uneven, 'row')} with more or fewer cells than the header"
        if is_total(self._last):
            yield f"the last row sums up others: {quote(' '.join(filter(None, self._last)))}"


def describe_rows(omissions: Iterable[Omission], tally: Tally | None, quote: Callable[[str], str] = quote_line) -> Iterator[str]:
    yield from (f"{count_noun(omission.count, omission.noun)} {omission.what}" for omission in omissions)
    yield from tally.describe(quote) if tally else ()


def write_note(omissions: Iterable[Omission], tally: Tally | None = None) -> str:
    return " ".join(f"{each[:1].upper()}{each[1:]}." for each in describe_rows(omissions, tally))


def is_total(cells: Sequence[str | None]) -> bool:
    """Whether a row sums up others: it says so in its first filled cell, alone or with empty or repeated cells beside it."""
    texts = [(cell or "").strip() for cell in cells]
    first = next(filter(None, texts), "")
    found = _TOTAL.match(first)
    return found is not None and (found.end() == len(first.rstrip(":")) or "" in texts or len(set(texts)) < len(texts))


class FoundTable(Struct):
    """A table with all of its rows. Positions are in bytes of the text that it was found in."""

    format: RowFormat
    header: Span | None = None
    """All rows of its header; None if it has none."""
    title: str = ""
    """What it is called in the text: a caption, a heading, or the key above it."""
    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    omissions: Sequence[Omission] = ()

    def __len__(self) -> int:
        return len(self.starts)

    def read(self, text: Text, number: int) -> str:
        return bytes(text[self.starts[number] : self.ends[number]]).decode("utf-8", "replace").rstrip("\r\n")


def number_lines(text: Text) -> Callable[[int], int]:
    """Gives the line of a position. Ask for positions that only grow."""
    reached, line = 0, 1

    def number(position: int) -> int:
        nonlocal reached, line
        line += bytes(text[reached:position]).count(b"\n")
        reached = position
        return line

    return number


def make_unique(names: Iterable[str]) -> list[str]:
    """Every column needs a name, and SQL does not tell `Id` from `id`."""
    taken = {ROW: 1}
    return [choose_name(name.strip().replace("\0", "") or f"column{number}", taken) for number, name in enumerate(names, 1)]


def choose_name(name: str, taken: dict[str, int]) -> str:
    """A name for a column that no other has. `taken` has the others in lower case, and this one afterwards, each with the number
    that was last put behind it: a name may occur ten thousand times."""
    chosen, key = name, name.lower()
    count = taken.get(key, 0)
    while chosen.lower() in taken:
        count += 1
        chosen = f"{name}_{count}"
    taken[key], taken[chosen.lower()] = max(1, count), 1
    return chosen


def make_name(title: str) -> str:
    """A name for SQL from a caption or a key; empty if nothing is left of it."""
    return _NOT_IN_NAMES.sub("_", title.lower()).strip("_")[:_MAX_NAME_CHARS].rstrip("_")


def name_column(headers: list[list[str]], column: int) -> str:
    """Headers over several rows: "2023 Revenue"."""
    parts = [row[column] for row in headers if column < len(row) and row[column]]
    return " ".join(dict.fromkeys(parts))
