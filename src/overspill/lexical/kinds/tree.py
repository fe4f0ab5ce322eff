"""Cuts JSON and XML, nested containers, into elements small enough to read."""

from __future__ import annotations

from array import array

from overspill.tables.json_tables import MIN_ROWS, Shape
from overspill.tables.table import Text
from overspill.text import pieces
from overspill.text.patterns import compile_pattern
from overspill.text.regex import regex

MAX_WHOLE_BYTES = 2_000
"""A larger element is cut into records of its members."""
MAX_ROW_BYTES = 16_000
"""An array element larger than this is cut. In lists of texts, those with embedded text are cut above `MAX_WHOLE_BYTES`."""
_MAX_LARGE_SHARE = 0.5
"""With more large elements, an array is a list of texts."""
_MIN_TABLES = 2
_MAX_DEPTH = 100
MIN_EMBEDDED_BYTES = 400
"""A string with escapes of at least this size is cut like a separate text."""

_JSON = regex(rb"(?s)\"[^\"\\]*+(?:\\.[^\"\\]*+)*+(?:\"(\s*+:)?|(\\?\Z))|([{\[])|([}\]])")
"""An unclosed string extends to the end; otherwise every quotation mark in it would start another search."""
_PLAIN_JSON = regex(
    rb"[^\"{}\[\]]*+(?:\"[^\"]*+\"(?!\s*+:\s*+[{\[])[^\"{}\[\]]*+)*+"
    rb"(?:((?:\"[^\"]*+\"\s*+:\s*+)?[{\[])([^\"{}\[\]]*+(?:\"[^\"]*+\"[^\"{}\[\]]*+)*+[}\]])?+|([}\]]))"
)
"""A container without other containers in it is one match, up to its end."""
_BETWEEN = rb"[^\"{}\[\]]*+"
_LEAF = rb"[{\[]" + _BETWEEN + rb"(?:\"[^\"]*+\"" + _BETWEEN + rb")*+[}\]]"
_NESTED = rb"[{\[]" + _BETWEEN + rb"(?:(?:\"[^\"]*+\"|" + _LEAF + rb")" + _BETWEEN + rb")*+[}\]]"
_PLAIN_ROW = regex(rb"[\s,]*+(\{" + _BETWEEN + rb"(?:(?:\"[^\"]*+\"|" + _NESTED + rb")" + _BETWEEN + rb")*+\})")
"""An element of an array with at most three containers in each other, which is one match if it will be one record."""
_MAX_ROW_DEPTH = 3
_NEXT_BRACKET = regex(rb"(?s)(?:[^\"{}\[\]]++|\"[^\"\\]*+(?:\\.[^\"\\]*+)*+(?:\"|\\?\Z))*+(?:([{\[])|[}\]])")
"""The match includes everything before the bracket, even strings. Matching each string would take three times as long."""
_OBJECT_START = regex(rb"\{\s*+\"[^\"\\]*+\"\s*+:")
_XML = regex(rb"(<!--|<!\[CDATA\[)|<[?!][^>]*+(?:>|\Z)|<[A-Za-z][^<>]*/>|(<[A-Za-z][^<>]*>)|(</[^<>]*>)")
_ARRAY_START = ord("[")
_CLOSES = {b"<!--": b"-->", b"<![CDATA[": b"]]>"}
_ESCAPES = (b"\\n", b'\\"')
_COLON = regex(rb"\s*+:")
_STRING = compile_pattern(rb'(?s)"[^"\\]*(?:\\.[^"\\]*)*"')
_PLAIN_MEMBERS = regex(rb"(?:[^\"{}\[\]]++|\"[^\"]*+\"(?!\s*+:\s*+[{\[]))*+")
_PIECE_BYTES = 1 << 20
"""How much one call searches. It blocks other threads for about ten milliseconds."""
_NOT_AROUND_COLON = regex(rb"[^\"\s:]")
"""A piece ends with one of these, and so contains what follows each of its keys."""


class Tree:
    """Containers in document order. `starts` are where keys or tags begin, `insides` where the content begins."""

    def __init__(self) -> None:
        self.starts = array("q")
        self.insides = array("q")
        self.ends = array("q")
        self.parents = array("q")
        self.children: dict[int, list[int]] = {}
        self.arrays: set[int] = set()
        self.texts: set[int] = set()
        self._lists_of_texts: dict[int, bool] = {}
        self._databases: dict[int, bool] = {}
        self.shapes: dict[int, Shape | None] = {}
        self.depth = 0
        self.unopened = 0

    def open(self, start: int, inside: int, parent: int, end: int = -1) -> int:
        """Below the maximum depth, a container is part of its parent, and only its end is counted. `end`: if it is known."""
        if self.depth >= _MAX_DEPTH:
            self.unopened += end < 0
            return parent
        self.depth += end < 0
        node = len(self.starts)
        self.starts.append(start)
        self.insides.append(inside)
        self.ends.append(end)
        self.parents.append(parent)
        if siblings := self.children.get(parent):
            siblings.append(node)
        else:
            self.children[parent] = [node]
        return node

    def close(self, node: int, end: int) -> int:
        """Returns the parent of the closed container. Text can close more than it opened."""
        if self.unopened:
            self.unopened -= 1
            return node
        if node < 0:
            return node
        self.depth -= 1
        self.ends[node] = end
        return self.parents[node]

    def is_long(self, position: int) -> bool:
        """Whether the first container is still open, and so long that only the ends of whole rows in it matter."""
        return self.ends[0] < 0 and position - self.starts[0] > MAX_WHOLE_BYTES and self.depth + _MAX_ROW_DEPTH < _MAX_DEPTH

    def shift(self, distance: int) -> Tree:
        self.starts, self.insides, self.ends = (
            array("q", (at + distance for at in ats)) for ats in (self.starts, self.insides, self.ends)
        )
        return self

    def is_list_of_texts(self, node: int) -> bool:
        """Whether many elements of an array are too large to be read whole, or it is not one of several arrays with rows."""
        if node not in self._lists_of_texts:
            elements = self.children[node]
            large = sum(self.ends[element] - self.starts[element] > MAX_WHOLE_BYTES for element in elements)
            is_large = large > _MAX_LARGE_SHARE * len(elements)
            self._lists_of_texts[node] = is_large or not self._is_database(self.parents[node])
        return self._lists_of_texts[node]

    def _is_database(self, node: int) -> bool:
        """Whether an object has several arrays with rows."""
        if node not in self._databases:
            arrays = (each for each in self.children[node] if each in self.arrays)
            self._databases[node] = sum(len(self.children.get(each, ())) >= MIN_ROWS for each in arrays) >= _MIN_TABLES
        return self._databases[node]


def json_tree(text: Text, start: int, end: int) -> Tree:
    """The containers in a JSON text. A pattern that skips strings without escapes saves two thirds of the time."""
    tree = Tree()
    plain = pieces.find(text, b"\\", start, end) < 0
    node = _containers(tree, text, start, end) if plain else _containers_and_texts(tree, text, start, end)
    _close_all(tree, node, end)
    return tree


def _containers(tree: Tree, text: Text, start: int, end: int) -> int:
    node, stop = -1, start
    while start < end:
        stop = stop if start < stop else _end_piece(text, start, end)
        if node in tree.arrays and tree.is_long(start) and (row := _PLAIN_ROW.match(text, start, stop)):
            first, last = row.span(1)
            if last - first <= MAX_ROW_BYTES:
                tree.open(first, first + 1, node, start := last)
                continue
        found = _PLAIN_JSON.match(text, start, stop)
        if found is None:
            start, stop = _skip_plain_members(text, start, stop, end), 0
            continue
        start, role = found.end(), found.lastindex
        if role == 3:
            node = tree.close(node, start)
            continue
        first, inside = found.span(1)
        opened = tree.open(first, inside, node, start if role == 2 else -1)
        if text[inside - 1] == _ARRAY_START:
            tree.arrays.add(opened)
        node = node if role == 2 else opened
    return node


def _skip_plain_members(text: Text, start: int, stop: int, end: int) -> int:
    """Returns where to continue, after plain members between `start` and `stop` if it finds no container."""
    if stop == end:
        return end
    found = _PLAIN_MEMBERS.match(text, start, stop)
    if found and found.end() > start:
        return found.end()
    closing = pieces.find(text, b'"', start + 1, end)  # a string that is longer than the piece
    return closing + 1 if closing >= 0 else end


def _containers_and_texts(tree: Tree, text: Text, start: int, end: int) -> int:
    node, key = -1, -1
    while start < end:
        stop = following = _end_piece(text, start, end)
        for token in _JSON.finditer(text, start, stop):
            role, (first, last) = token.lastindex, token.span()
            if role == 2 and stop < end:
                role, last, following = _read_long_string(text, first, end)
            if role == 1:
                key = first
                continue
            if role == 3:
                node = tree.open(key if key >= 0 else first, last, node)
                if token[3] == b"[":
                    tree.arrays.add(node)
            elif role == 4:
                node = tree.close(node, last)
            elif (
                role is None
                and last - first >= MIN_EMBEDDED_BYTES
                and any(pieces.find(text, escape, first, last) >= 0 for escape in _ESCAPES)
            ):
                embedded = tree.open(key if key >= 0 else first, first + 1, node)
                if embedded != node:
                    tree.texts.add(embedded)
                tree.close(embedded, last)
            key = -1
        start = following
    return node


def find_element_start(window: bytes) -> int:
    """The outermost object that begins in a stretch of JSON, or -1.

    An object whose first key is not escaped is outside strings. Everything after it can be read as JSON.
    """
    first = _OBJECT_START.search(window)
    if not first:
        return -1
    best, depth, least = first.start(), 0, 0
    bracket = _NEXT_BRACKET.match(window, first.start())
    while bracket:
        end = bracket.end()
        if bracket.lastindex is None:
            depth -= 1
        else:
            if depth < least and _OBJECT_START.match(window, end - 1):
                best, least = end - 1, depth
            depth += 1
        bracket = _NEXT_BRACKET.match(window, end)
    return best


def _end_piece(text: Text, start: int, end: int) -> int:
    """The end of a piece that can be read on its own, except for a string that it cuts off."""
    found = _NOT_AROUND_COLON.search(text, min(start + _PIECE_BYTES, end), end)
    return found.end() if found else end


def _read_long_string(text: Text, start: int, end: int) -> tuple[int | None, int, int]:
    """The role of a string that a piece cuts off, its end, and where to continue: `_JSON` without keeping threads waiting."""
    string = next(iter(_STRING.finditer(text, start, end)), None)
    if string is None or string.start() != start:
        return 2, end, end
    colon = _COLON.match(text, string.end(), end)
    return (1, colon.end(), colon.end()) if colon else (None, string.end(), string.end())


def xml_tree(text: Text, start: int, end: int) -> Tree:
    tree, node = Tree(), -1
    while token := _XML.search(text, start, end):
        start = token.end()
        if token.lastindex == 1:
            closing = pieces.find(text, _CLOSES[token[1]], start, end)
            start = closing if closing >= 0 else end
        elif token.lastindex == 2:
            node = tree.open(token.start(), start, node)
        elif token.lastindex == 3:
            node = tree.close(node, start)
    _close_all(tree, node, end)
    return tree


def _close_all(tree: Tree, node: int, end: int) -> None:
    """Closes the containers that a truncated output leaves open."""
    tree.unopened = 0
    while node >= 0:
        node = tree.close(node, end)
