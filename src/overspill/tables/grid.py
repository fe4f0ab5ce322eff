"""A table of a page, in which cells may span several rows or columns."""

from __future__ import annotations


class Grid:
    """Rows of cells, with those that span several repeated."""

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.rows: list[list[str]] = []
        self.header_rows = 0
        self.cells = 0
        self._row: list[str] = []
        self._is_header = True
        self._from_above: dict[int, tuple[str, int]] = {}

    def begin_row(self) -> None:
        self._row, self._is_header = [], True

    def add(self, text: str, columns: int, rows: int, *, is_header: bool) -> None:
        self._fill_from_above()
        for _ in range(columns):
            if rows > 1:
                self._from_above[len(self._row)] = (text, rows - 1)
            self._row.append(text)
        self.cells += columns
        self._is_header &= is_header

    def end_row(self) -> None:
        if self._row:
            self._fill_from_above()
            self.header_rows += self._is_header and self.header_rows == len(self.rows)
            self.rows.append(self._row)
        self._row = []

    def _fill_from_above(self) -> None:
        while (above := self._from_above.get(len(self._row))) is not None:
            text, rows = above
            if rows > 1:
                self._from_above[len(self._row)] = (text, rows - 1)
            else:
                del self._from_above[len(self._row)]
            self._row.append(text)


def name_column(headers: list[list[str]], column: int) -> str:
    """Headers over several rows: "2023 / Revenue"."""
    parts = [row[column] for row in headers if column < len(row) and row[column]]
    return " ".join(dict.fromkeys(parts))
