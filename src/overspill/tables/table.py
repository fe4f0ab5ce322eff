"""A table in an output: where its header and rows are, and how to split a row into cells."""

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
"""The column with each row's place in the output."""
_NOT_IN_NAMES = regex(r"[^a-z0-9]+")
_MAX_NAME_CHARS = 40
_TOTAL = regex(r"(?i)\W*+(?:grand |sub-?)?(?:totals?|sums?|summe|gesamt|insgesamt)\b")
MAX_TABLES = 50
"""How many tables of one output to load. Look for one more than this: the last loaded table notes that there are more."""


class Unreadable(Exception):
    """A table cannot be read completely."""


class Row(NamedTuple):
    """A row of a table, with its cells by column name."""

    where: int | str
    """The row's line, its number, the byte at which it begins, or its JSON pointer."""
    span: Span
    cells: dict[str, Any] | None
    """The row's cells by column; None if it cannot be read."""
    extra: str | None = None
    """Cells beyond the named columns, if any."""


class RowFormat(Struct, frozen=True):
    """The format of a table's rows. It is detected at the beginning of the table, and can split any of its rows."""

    names: tuple[str, ...] = ()
    """The unique names of its columns, from its header, or `column1` … where the header is empty."""

    def split(self, row: str) -> list[str]:
        """The cells of a row, without their delimiters. An uneven row has fewer or more cells than there are names."""
        raise NotImplementedError

    def read(self, where: int, span: Span, text: Text) -> Row:
        cells = self.split(bytes(text[span[0] : span[1]]).decode("utf-8", "replace").replace("\0", ""))
        named: dict[str, Any] = {name: cell or None for name, cell in zip(self.names, cells, strict=False)}
        extra = self.join(cells[len(self.names) :]) if len(cells) > len(self.names) else None
        return Row(where, span, named if cells else None, extra)

    def join(self, cells: list[str]) -> str:
        return "|".join(cells)


class JsonRows(RowFormat, frozen=True):
    """Rows that are JSON objects, which name their own fields."""

    are_siblings: bool = False
    """Whether they are the rows next to longer ones that were cut."""
    are_lists: bool = False
    """Whether they are the rows of several lists, each under a key."""


class Omission(Struct, frozen=True):
    """What a reader left out or could not read, in words for people: "2 rows that the output does not show"."""

    count: int
    what: str
    noun: str = "row"


class Tally:
    """Counts facts about rows while reading them, in the same way for cards, SQL and the engine."""

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
    """Whether a row has totals: its first filled cell says so, by itself or next to empty or repeated cells."""
    texts = [(cell or "").strip() for cell in cells]
    first = next(filter(None, texts), "")
    found = _TOTAL.match(first)
    return found is not None and (found.end() == len(first.rstrip(":")) or "" in texts or len(set(texts)) < len(texts))


class FoundTable(Struct):
    """A table with all of its rows. Positions are byte positions in its text."""

    format: RowFormat
    header: Span | None = None
    """All rows of its header; None if it has none."""
    title: str = ""
    """The table's name in the text: a caption, a heading, or the key above it."""
    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    omissions: Sequence[Omission] = ()

    def __len__(self) -> int:
        return len(self.starts)

    def read(self, text: Text, number: int) -> str:
        return bytes(text[self.starts[number] : self.ends[number]]).decode("utf-8", "replace").rstrip("\r\n")


def number_lines(text: Text) -> Callable[[int], int]:
    """Returns a function for the line of a position. Call it with ascending positions only."""
    reached, line = 0, 1

    def number(position: int) -> int:
        nonlocal reached, line
        line += bytes(text[reached:position]).count(b"\n")
        reached = position
        return line

    return number


def make_unique(names: Iterable[str]) -> list[str]:
    """Gives every column a unique name. To SQL, `Id` and `id` are the same."""
    taken = {ROW: 1}
    return [choose_name(name.strip().replace("\0", "") or f"column{number}", taken) for number, name in enumerate(names, 1)]


def choose_name(name: str, taken: dict[str, int]) -> str:
    """A unique name for a column. `taken` maps the other names, in lower case, to the number last appended to each, because a
    name may occur ten thousand times. Adds the new name to it."""
    chosen, key = name, name.lower()
    count = taken.get(key, 0)
    while chosen.lower() in taken:
        count += 1
        chosen = f"{name}_{count}"
    taken[key], taken[chosen.lower()] = max(1, count), 1
    return chosen


def make_name(title: str) -> str:
    """An SQL name made from a caption or a key; empty if no usable character is left."""
    return _NOT_IN_NAMES.sub("_", title.lower()).strip("_")[:_MAX_NAME_CHARS].rstrip("_")


def name_column(headers: list[list[str]], column: int) -> str:
    """Joins a column's names from several header rows: "2023 Revenue"."""
    parts = [row[column] for row in headers if column < len(row) and row[column]]
    return " ".join(dict.fromkeys(parts))
