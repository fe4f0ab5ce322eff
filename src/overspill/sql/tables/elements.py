"""XML: each kind of element that occurs several times in its parent is a table. JUnit reports are such files."""

from __future__ import annotations

from collections.abc import Callable
from mmap import mmap
from pathlib import Path
from typing import Any
from xml.parsers import expat

from msgspec import Struct

from overspill.sql.tables.table import MAX_TABLES, Found, RowWriter, Unreadable

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


class _Row(Struct):
    depth: int
    place: int
    cells: dict[str, list[str]]
    """All that belongs to a column, joined once: an element may occur a million times."""


class _Walk:
    """Calls `start(tag, attributes)` and `end(tag)` for elements, with their path and depth known."""

    def __init__(self, text: mmap | bytes) -> None:
        self._text = text
        self.open: list[_Element] = [_Element("", {}, [])]
        self.parser = expat.ParserCreate("utf-8")  # what it was decoded to, whatever it declares
        self.parser.buffer_text = True
        self.parser.EntityDeclHandler = _refuse_entities

    def run(self, start: Callable[[dict[str, str]], None], end: Callable[[], None]) -> None:
        def opened(tag: str, attributes: dict[str, str]) -> None:
            if len(self.open) > _MAX_DEPTH:
                raise Unreadable(f"its elements are nested more than {_MAX_DEPTH} levels deep.")
            above = self.open[-1]
            above.children[tag] = above.children.get(tag, 0) + 1
            self.open.append(_Element(f"{above.path}/{tag}", {}, []))
            start(attributes)

        def closed(_: str) -> None:
            end()
            self.open.pop()

        self.parser.StartElementHandler = opened
        self.parser.EndElementHandler = closed
        self.parser.CharacterDataHandler = lambda data: self.open[-1].text.append(data)
        self.parser.SkippedEntityHandler = lambda name, _: self.open[-1].text.append(f"&{name};")  # declared elsewhere
        try:
            for position in range(0, len(self._text), _CHUNK_BYTES):
                self.parser.Parse(self._text[position : position + _CHUNK_BYTES], False)
            self.parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise Unreadable(f"it is not well-formed XML ({error}).") from None


def find_elements(text: mmap | bytes, work: Callable[[], Path]) -> list[Found]:
    repeated = _find_repeated(text)
    paths = list(repeated)[: MAX_TABLES + 1]
    rows = _Rows(_Walk(text), {path: RowWriter(work()) for path in paths})
    rows.walk.run(rows.start, rows.end)
    return [writer.finish(path.rpartition("/")[2]) for path, writer in rows.writers.items()]


def _find_repeated(text: mmap | bytes) -> dict[str, None]:
    """The paths of elements that occur several times in a parent, in the order in which they were found."""
    walk, repeated, known = _Walk(text), dict[str, None](), set[str]()

    def start(_: dict[str, str]) -> None:
        walk.open[-1].text.clear()
        known.add(walk.open[-1].path)
        if len(known) > _MAX_PATHS:
            raise Unreadable(f"its elements are in more than {_MAX_PATHS:,} different places.")

    def end() -> None:
        ended = walk.open[-1]
        ended.text.clear()
        repeated.update({f"{ended.path}/{tag}": None for tag, times in ended.children.items() if times > 1})

    walk.run(start, end)
    return dict.fromkeys(sorted(repeated, key=lambda path: path.count("/")))


class _Rows:
    """Attributes and the text of elements inside are the columns of a row; an inner one's are called `inner.name`."""

    def __init__(self, walk: _Walk, writers: dict[str, RowWriter]) -> None:
        self.walk = walk
        self.writers = writers
        self._rows: list[_Row] = []

    def start(self, attributes: dict[str, str]) -> None:
        depth = len(self.walk.open)
        if self.walk.open[-1].path in self.writers:
            parent = {PARENT: [str(self._rows[-1].place)]} if self._rows else {}
            self._rows.append(_Row(depth, self.walk.parser.CurrentByteIndex, parent))
        for name, value in attributes.items():
            self._add(name, value)

    def end(self) -> None:
        element = self.walk.open[-1]
        if (value := "".join(element.text).strip()) and self._rows:
            inside = len(self.walk.open) > self._rows[-1].depth
            self._add("" if inside and not element.children else TEXT, value)
        if self._rows and len(self.walk.open) == self._rows[-1].depth:
            row = self._rows.pop()
            self.writers[element.path].write(row.place, {name: "\n".join(values) for name, values in row.cells.items()})

    def _add(self, name: str, value: str) -> None:
        if not self._rows:
            return
        row = self._rows[-1]
        inner = [element.path.rpartition("/")[2] for element in self.walk.open[row.depth :]]
        key = ".".join(filter(None, (*inner, name)))
        row.cells.setdefault(f"{key}_2" if key == PARENT else key, []).append(value)


def _refuse_entities(*_: Any) -> None:
    raise Unreadable("it declares entities, which may stand for any amount of text.")
