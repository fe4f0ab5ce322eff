"""Labels and their values in an HTML page: rows of two cells, definition lists, and bold words before a colon."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple

CELLS = {"th", "td", "dt", "dd"}
INLINE_LABELS = {"b", "strong"}
BLOCKS = {"p", "div", "li", "br", "tr", "table", "ul", "dl", "section", "h1", "h2", "h3", "h4", "script", "style"}
SILENT = {"script", "style", "template"}


class Labelled(NamedTuple):
    label: str
    value: str


class LabelParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pairs: list[Labelled] = []
        self._row: list[list[str]] = []
        self._cell: list[str] | None = None
        self._term = ""
        self._bold: list[str] | None = None
        self._waiting = ""  # a bold label whose value has not come yet
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in SILENT:
            self._silent += 1
        if tag == "tr":
            self._row = []
        if tag in CELLS:
            self._cell = []
        elif tag in INLINE_LABELS:
            self._bold = []
        elif tag in BLOCKS:
            self._waiting = ""

    def handle_endtag(self, tag: str) -> None:
        if tag in SILENT:
            self._silent = max(0, self._silent - 1)
        if tag in INLINE_LABELS and self._bold is not None:
            words = " ".join(self._bold).strip()
            self._waiting = words if words.endswith(":") else ""
            self._bold = None
        elif tag in CELLS and self._cell is not None:
            self._end_cell(tag)
        elif tag == "tr" and len(self._row) == 2:
            self._add(" ".join(self._row[0]), self._row[1])
            self._row = []

    def _end_cell(self, tag: str) -> None:
        cell, self._cell = self._cell or [], None
        if tag in {"th", "td"}:
            self._row.append(cell)
        elif tag == "dt":
            self._term = " ".join(cell)
        else:
            self._add(self._term, cell)
            self._term = ""

    def handle_data(self, data: str) -> None:
        text = data.strip()
        if not text or self._silent:
            return
        if self._bold is not None:
            self._bold.append(text)
        elif self._waiting:
            self._add(self._waiting, [text.lstrip(": ")])
            self._waiting = ""
        if self._cell is not None:
            self._cell.append(text)

    def _add(self, label: str, texts: list[str]) -> None:
        """Uses the longest run of text, because it occurs in the page verbatim, with any tags around it."""
        value = max(texts, key=len, default="")
        label = " ".join(label.split()).strip(" :\u200e\u200f")
        if label and value:
            self.pairs.append(Labelled(label, value.strip("\u200e\u200f ")))


def find_labels(page: str) -> list[Labelled]:
    parser = LabelParser()
    parser.feed(page)
    parser.close()
    return parser.pairs
