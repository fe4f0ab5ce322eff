"""XML: each kind of element that occurs several times in its parent is a table. JUnit reports are such files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

from msgspec import Struct

from overspill.tables.table import MAX_TABLES, FoundTable, Row, RowFormat, Text, Unreadable

_CHUNK_BYTES = 1 << 16
_MAX_DEPTH = 200
_MAX_PATHS = 100_000
"""Different places that elements may have, so that counting them takes little memory."""
PARENT = "_parent"
"""The `_row` of the row that an element is in: where its text begins, in bytes. A line can have many elements."""
TEXT = "text"


class _Element(Struct):
    path: str
    children: dict[str, int]
    text: list[str]


class _OpenRow(Struct):
    depth: int
    start: int
    cells: dict[str, list[str]]
    """All that belongs to a column, joined once: an element may occur a million times."""


class _Walk:
    """Goes through a text. The paths of elements that occur several times in a parent are in `repeated`, in the order in which
    they were found; elements at the paths of `tables` are rows."""

    def __init__(self, text: Text, tables: dict[str, FoundTable]) -> None:
        self._text, self._tables = text, tables
        self.repeated = dict[str, None]()
        self._known = set[str]()
        self._open = [_Element("", {}, [])]
        self._rows = list[_OpenRow]()
        self._done = list[tuple[FoundTable, Row]]()
        self._parser = expat.ParserCreate("utf-8")  # what it was decoded to, whatever it declares
        self._parser.buffer_text = True
        self._parser.EntityDeclHandler = _refuse_entities
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._start, self._end
        self._parser.CharacterDataHandler = self._add_text if tables else None
        self._parser.SkippedEntityHandler = lambda name, _: self._add_text(f"&{name};")  # declared elsewhere

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
            end = self._parser.CurrentByteIndex  # of the end tag, or behind a tag that is both
            end = self._text.find(b">", end) + 1 if self._text[end : end + 2] == b"</" else end
            cells = {name: "\n".join(values) for name, values in row.cells.items()}
            self._done.append((self._tables[element.path], Row(row.start, (row.start, end), cells)))
        self._open.pop()

    def _add(self, name: str, value: str) -> None:
        """Attributes and the text of elements inside are columns of a row; an inner one's are called `inner.name`."""
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
