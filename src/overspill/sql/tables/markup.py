"""Tables in HTML pages."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from mmap import mmap
from pathlib import Path

from overspill.sql.tables.table import MAX_TABLES, Found, RowWriter, Unreadable, describe_total
from overspill.tables.grid import Grid, name_column
from overspill.tables.names import make_unique

_MAX_SPAN = 1_000
_MAX_CELLS = 5_000_000
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_HIDDEN = frozenset(("script", "style", "template"))
_CHUNK_BYTES = 1 << 20


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.done: list[Grid] = []
        self._open: list[Grid] = []
        self._text: list[list[str]] = []
        self._cell: list[tuple[int, int, bool]] = []
        self._heading = ""
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag == "table":
            self._open.append(Grid(self._heading))
        elif tag in _HEADINGS or (tag == "caption" and self._open):
            self._text.append([])
        elif tag == "tr" and self._open:
            self._end_cell()
            self._open[-1].end_row()
            self._open[-1].begin_row()
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
        elif tag == "tr" and self._open:
            self._end_cell()
            self._open[-1].end_row()
        elif tag == "table" and self._open:
            self._end_cell()
            grid = self._open.pop()
            grid.end_row()
            self.done.append(grid)

    def handle_data(self, data: str) -> None:
        if self._text and not self._hidden:
            self._text[-1].append(data)

    @property
    def cells(self) -> int:
        return sum(grid.cells for grid in (*self.done, *self._open))

    def _end_cell(self) -> None:
        # A cell may hold a table, whose cells end first.
        if self._cell and self._open and len(self._cell) >= len(self._open) and self._text:
            columns, rows, is_header = self._cell.pop()
            self._open[-1].add(_join(self._text.pop()), columns, rows, is_header=is_header)


def find_in_page(text: mmap | bytes, work: Callable[[], Path]) -> list[Found]:
    page = _Page()
    for start in range(0, len(text), _CHUNK_BYTES):
        page.feed(text[start : start + _CHUNK_BYTES].decode("utf-8", "replace").replace("\0", ""))
        if page.cells > _MAX_CELLS:
            raise Unreadable(f"its tables have more than {_MAX_CELLS:,} cells.")
    grids = [grid for grid in page.done if len(grid.rows) > 1 and len(grid.rows[0]) > 1]
    return [_write(grid, work()) for grid in grids[: MAX_TABLES + 1]]


def _write(grid: Grid, target: Path) -> Found:
    headers = grid.rows[: max(1, grid.header_rows)]
    width = max(map(len, grid.rows))
    names = make_unique(name_column(headers, column) for column in range(width))
    writer = RowWriter(target, names)
    for number, cells in enumerate(grid.rows[len(headers) :], 1):
        writer.write(number, {name: cell or None for name, cell in zip(names, cells, strict=False)})
    return writer.finish(grid.title, note=describe_total(grid.rows[-1]))


def _read_span(value: str | None) -> int:
    return max(1, min(int(value), _MAX_SPAN)) if value and value.isascii() and value.isdecimal() and len(value) < 9 else 1


def _join(parts: list[str]) -> str:
    return " ".join("".join(parts).split())
