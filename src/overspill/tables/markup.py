"""Tables in markup: HTML tables, and elements of XML that occur several times in a parent, as in JUnit reports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any
from xml.parsers import expat

from msgspec import Struct

from overspill.tables.table import MAX_TABLES, FoundTable, Row, RowFormat, Text, Unreadable, make_unique, name_column

_CHUNK_BYTES = 1 << 16
_MAX_SPAN = 1_000
_MAX_CELLS = 5_000_000
_MAX_SPANNED_COLUMNS = 500
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_HIDDEN = frozenset(("script", "style", "template"))
_MAX_DEPTH = 200
_MAX_PATHS = 100_000
"""How many different paths to count, to limit the memory for them."""
PARENT = "_parent"
"""The `_row` of the row that contains an element: the byte where its text begins, because a line can have many elements."""
TEXT = "text"


class _Element(Struct):
    path: str
    children: dict[str, int]
    text: list[str]


class _OpenRow(Struct):
    depth: int
    start: int
    cells: dict[str, list[str]]
    """All values for each column. They are joined only once, because an element may occur a million times."""


class _Walk:
    """Walks through the elements. Collects the paths of those that occur several times in a parent in `repeated`, in the order
    in which it finds them. Elements at the paths in `tables` are rows."""

    def __init__(self, text: Text, tables: dict[str, FoundTable]) -> None:
        self._text, self._tables = text, tables
        self.repeated = dict[str, None]()
        self._known = set[str]()
        self._open = [_Element("", {}, [])]
        self._rows = list[_OpenRow]()
        self._done = list[tuple[FoundTable, Row]]()
        self._parser = expat.ParserCreate("utf-8")  # the text was decoded to UTF-8, even if it declares another encoding
        self._parser.buffer_text = True
        self._parser.EntityDeclHandler = _refuse_entities
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._start, self._end
        self._parser.CharacterDataHandler = self._add_text if tables else None
        self._parser.SkippedEntityHandler = lambda name, _: self._add_text(f"&{name};")  # for entities declared in another file

    def run(self) -> Iterator[tuple[FoundTable, Row]]:
        try:
            for position in range(0, len(self._text), _CHUNK_BYTES):
                self._parser.Parse(bytes(self._text[position : position + _CHUNK_BYTES]), False)
                yield from self._done
                self._done.clear()
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise Unreadable(f"it is not well-formed XML ({error}).") from None

    def _add_text(self, data: str) -> None:
        self._open[-1].text.append(data)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        above = self._open[-1]
        path = f"{above.path}/{tag}"
        self._known.add(path)
        if len(self._open) > _MAX_DEPTH or len(self._known) > _MAX_PATHS:
            raise Unreadable(
                f"its elements are nested more than {_MAX_DEPTH} levels deep, or in {_MAX_PATHS:,} different places."
            )
        above.children[tag] = above.children.get(tag, 0) + 1
        if above.children[tag] == 2:
            self.repeated[path] = None
        self._open.append(_Element(path, {}, []))
        if path in self._tables:
            parent = {PARENT: [str(self._rows[-1].start)]} if self._rows else {}
            self._rows.append(_OpenRow(len(self._open), self._parser.CurrentByteIndex, parent))
        for name, value in attributes.items():
            self._add(name, value)

    def _end(self, _: str) -> None:
        element, row = self._open[-1], self._rows[-1] if self._rows else None
        if row and (value := "".join(element.text).strip()):
            self._add("" if len(self._open) > row.depth and not element.children else TEXT, value)
        if row and len(self._open) == row.depth:
            self._rows.pop()
            end = self._parser.CurrentByteIndex  # the start of the end tag, or the end of a self-closing tag
            end = self._text.find(b">", end) + 1 if self._text[end : end + 2] == b"</" else end
            cells = {name: "\n".join(values) for name, values in row.cells.items()}
            self._done.append((self._tables[element.path], Row(row.start, (row.start, end), cells)))
        self._open.pop()

    def _add(self, name: str, value: str) -> None:
        """Adds a value to a row. Attributes and text are columns; those of inner elements are called `inner.name`."""
        if not self._rows:
            return
        row = self._rows[-1]
        inner = [element.path.rpartition("/")[2] for element in self._open[row.depth :]]
        key = ".".join(filter(None, (*inner, name)))
        row.cells.setdefault(f"{key}_2" if key == PARENT else key, []).append(value)


def read_elements(text: Text) -> Iterator[tuple[FoundTable, Row]]:
    walk = _Walk(text, {})
    list(walk.run())
    paths = sorted(walk.repeated, key=lambda path: path.count("/"))[: MAX_TABLES + 1]
    return _Walk(text, {path: FoundTable(RowFormat(), title=path.rpartition("/")[2]) for path in paths}).run()


def _refuse_entities(*_: Any) -> None:
    raise Unreadable("it declares entities, which may stand for any amount of text.")


class _Grid:
    """Rows of cells. Cells that span several columns or rows are repeated."""

    def __init__(self, title: str, count: list[int]) -> None:
        self.title = title
        self.rows: list[list[str]] = []
        self.header_rows = 0
        self._count = count
        """The number of cells in all tables of a page."""
        self._row: list[str] = []
        self._is_header = True
        self._from_above: dict[int, tuple[str, int]] = {}

    def add(self, text: str, columns: int, rows: int, *, is_header: bool) -> None:
        self._fill_from_above()
        for column in range(len(self._row), len(self._row) + columns):
            if rows > 1:
                self._from_above[column] = (text, rows - 1)
            self._row.append(text)
        self._count[0] += columns
        if self._count[0] > _MAX_CELLS:
            raise Unreadable(f"its tables have more than {_MAX_CELLS:,} cells.")
        self._is_header &= is_header

    def end_row(self) -> None:
        if self._row:
            self._fill_from_above()
            self.header_rows += self._is_header and self.header_rows == len(self.rows)
            self.rows.append(self._row)
        self._row, self._is_header = [], True

    def _fill_from_above(self) -> None:
        while above := self._from_above.pop(len(self._row), None):
            text, rows = above
            if rows > 1:
                self._from_above[len(self._row)] = (text, rows - 1)
            self._row.append(text)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.done: list[_Grid] = []
        self._open: list[_Grid] = []
        self._text: list[list[str]] = []
        self._cell: list[tuple[int, int, bool]] = []
        self._heading = ""
        self._hidden = 0
        self._count = [0]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag == "table":
            self._open.append(_Grid(self._heading, self._count))
        elif tag in _HEADINGS or (tag == "caption" and self._open):
            self._text.append([])
        elif tag == "tr" and self._open:
            self._end_row()
        elif tag in ("td", "th") and self._open:
            self._end_cell()
            spans = dict(attrs)
            self._cell.append((_read_span(spans.get("colspan")), _read_span(spans.get("rowspan")), tag == "th"))
            self._text.append([])
        elif tag == "br":
            self.handle_data(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        elif tag in ("td", "th"):
            self._end_cell()
        elif tag in _HEADINGS and self._text and not self._cell:
            self._heading = _join(self._text.pop())
        elif tag == "caption" and self._open and self._text:
            self._open[-1].title = _join(self._text.pop())
        elif tag in ("tr", "table") and self._open:
            self._end_row()
            if tag == "table":
                self.done.append(self._open.pop())

    def handle_data(self, data: str) -> None:
        if self._text and not self._hidden:
            self._text[-1].append(data)

    def _end_row(self) -> None:
        self._end_cell()
        self._open[-1].end_row()

    def _end_cell(self) -> None:
        # A cell may contain a table, whose cells end first.
        if self._cell and self._open and len(self._cell) >= len(self._open) and self._text:
            columns, rows, is_header = self._cell.pop()
            self._open[-1].add(_join(self._text.pop()), columns, rows, is_header=is_header)


def read_page(text: Text) -> Iterator[tuple[FoundTable, Row]]:
    for grid in _parse(text):
        if len(grid.rows) > 1 and len(grid.rows[0]) > 1:
            headers, width = grid.rows[: max(1, grid.header_rows)], max(map(len, grid.rows))
            names = make_unique(name_column(headers, column) for column in range(width))
            table = FoundTable(RowFormat(tuple(names)), title=grid.title)
            for number, cells in enumerate(grid.rows[len(headers) :], 1):
                yield table, Row(number, (0, 0), {name: cell or None for name, cell in zip(names, cells, strict=False)})


def read_spanning(rows: bytes) -> list[list[list[str]]]:
    """The rows of a table's header, and the others, with the cells that span columns or rows. Tables inside cells end first."""
    with suppress(Unreadable):
        for grid in _parse(b"<table>%b</table>" % rows)[-1:]:  # none if a comment or a script does not end
            cells = [row[:_MAX_SPANNED_COLUMNS] for row in grid.rows]
            return [cells[: grid.header_rows], cells[grid.header_rows :]]
    return [[], []]


def _parse(text: Text) -> list[_Grid]:
    page = _Page()
    for start in range(0, len(text), _CHUNK_BYTES):
        page.feed(bytes(text[start : start + _CHUNK_BYTES]).decode("utf-8", "replace").replace("\0", ""))
    return page.done


def _read_span(value: str | None) -> int:
    return max(1, min(int(value), _MAX_SPAN)) if value and value.isascii() and value.isdecimal() and len(value) < 9 else 1


def _join(parts: list[str]) -> str:
    return " ".join("".join(parts).split())
