"""Tables in HTML pages, in which cells may span several rows or columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html.parser import HTMLParser

from overspill.tables.names import make_unique, name_column
from overspill.tables.table import FoundTable, Row, RowFormat, Text, Unreadable

_MAX_SPAN = 1_000
_MAX_CELLS = 5_000_000
MAX_HEADER_ROWS = 3
_MAX_HEADER_COLUMNS = 500
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_HIDDEN = frozenset(("script", "style", "template"))
_CHUNK_BYTES = 1 << 20


class _Grid:
    """Rows of cells, with those that span several repeated."""

    def __init__(self, title: str, count: list[int]) -> None:
        self.title = title
        self.rows: list[list[str]] = []
        self.header_rows = 0
        self._count = count
        """Of the cells of all tables of a page."""
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
        # A cell may hold a table, whose cells end first.
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


def read_header(rows: Iterable[tuple[bytes, list[str]]]) -> list[list[str]]:
    """The rows of a table's header, as long as the first ones have cells of headers alone. Each is given by its source, and by
    what others see of its cells."""
    try:
        grid = _parse(b"<table>%b</table>" % b"</tr>".join(source for source, _ in rows))[0]
    except Unreadable:
        return []
    return [row[:_MAX_HEADER_COLUMNS] for row in grid.rows[: grid.header_rows]]


def _parse(text: Text) -> list[_Grid]:
    page = _Page()
    for start in range(0, len(text), _CHUNK_BYTES):
        page.feed(bytes(text[start : start + _CHUNK_BYTES]).decode("utf-8", "replace").replace("\0", ""))
    return page.done


def _read_span(value: str | None) -> int:
    return max(1, min(int(value), _MAX_SPAN)) if value and value.isascii() and value.isdecimal() and len(value) < 9 else 1


def _join(parts: list[str]) -> str:
    return " ".join("".join(parts).split())
