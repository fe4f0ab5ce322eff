"""Cuts JSON and XML, nested containers, into elements small enough to read."""

from __future__ import annotations

from array import array

from overspill.tables.json_tables import ROWS_INSIDE, Shape
from overspill.tables.table import Text
from overspill.text import pieces
from overspill.text.patterns import compile_pattern, find_groups
from overspill.text.regex import regex

MAX_WHOLE_BYTES = 2_000
"""A larger element is cut into records of its members."""
MAX_ROW_BYTES = 16_000
"""An array element larger than this is cut. In lists of texts, those with embedded text are cut above `MAX_WHOLE_BYTES`."""
_MAX_LARGE_SHARE = 0.5
"""With more large elements, an array is a list of texts."""
_MAX_DEPTH = 100
MIN_EMBEDDED_BYTES = 400
"""A string with escapes of at least this size is cut like a separate text."""

_KEYED = rb"(?:\"[^\"\\]*+\"\s*+:\s*+)?"
_BETWEEN = rb"[^\"{}\[\]]*+"
_MEMBERS = _BETWEEN + rb"(?:\"[^\"\\]*+\"(?!\s*+:\s*+[{\[])" + _BETWEEN + rb")*+"
_IN_LEAF = _BETWEEN + rb"(?:\"[^\"\\]*+\"" + _BETWEEN + rb")*+[}\]]"
_JSON = regex(_MEMBERS + rb"(?:(" + _KEYED + rb"[{\[])(" + _IN_LEAF + rb")?+|([}\]])|(\"[^\"\\]*+\\))")
"""Plain members up to the next bracket or string with escapes. A container without others in it is one match, up to its end."""
_NESTED = rb"[{\[]" + _BETWEEN + rb"(?:(?:\"[^\"\\]*+\"|[{\[]" + _IN_LEAF + rb")" + _BETWEEN + rb")*+[}\]]"
_PLAIN_ROW = regex(rb"[\s,]*+(\{" + _BETWEEN + rb"(?:(?:\"[^\"\\]*+\"|" + _NESTED + rb")" + _BETWEEN + rb")*+\})")
"""An element of an array with at most three containers in each other, which is one match if it will be one record."""
_MAX_ROW_DEPTH = 3
_NEXT_BRACKET = regex(rb"(?s)(?:[^\"{}\[\]]++|\"[^\"\\]*+(?:\\.[^\"\\]*+)*+(?:\"|\\?\Z))*+(?:([{\[])|[}\]])")
"""The match includes everything before the bracket, even strings. Matching each string would take three times as long."""
_OBJECT_START = regex(rb"\{\s*+\"[^\"\\]*+\"\s*+:")
_XML = regex(rb"(<!--|<!\[CDATA\[)|<[?!][^>]*+(?:>|\Z)|<[A-Za-z][^<>]*/>|(<[A-Za-z][^<>]*>)|(</[^<>]*>)")
_ARRAY_START = ord("[")
_CLOSES = {b"<!--": b"-->", b"<![CDATA[": b"]]>"}
_ESCAPES = (b"\\n", b'\\"')
_STRING_OF_ROWS = regex(rb"\"(?:[^\"\\\n\[{]{0,400}+\\n){0,4}+(?:\s|\\[nrt])*+" + ROWS_INSIDE.pattern + rb"\s*+\\\"")
"""A string that holds a list of objects, perhaps below a few words."""
_COLON = regex(rb"\s*+:(\s*+[{\[])?+")
_STRING = compile_pattern(rb'(?s)"[^"\\]*(?:\\.[^"\\]*)*"')
_PLAIN_MEMBERS = regex(_MEMBERS)
_KEY = regex(rb"(?s:.*)(\"[^\"]*+\")\s*+:\s*+\Z")
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
        self.short_texts: set[int] = set()
        """Shorter strings that are texts only because they hold a list of objects."""
        self.around_rows: set[int] = set()
        """The containers around strings that hold a list of objects."""
        self.runs: dict[int, int] = {}
        """How many consecutive rows without containers begin with this one, which are not larger than `MAX_ROW_BYTES`."""
        self._lists_of_texts: dict[int, bool] = {}
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

    def add_text(self, start: int, inside: int, end: int, parent: int, *, has_rows: bool, is_text: bool) -> None:
        node = self.open(start, inside, parent)
        self.close(node, end)
        if node == parent:
            return
        (self.texts if is_text else self.short_texts).add(node)
        while has_rows and parent >= 0 and parent not in self.around_rows:
            self.around_rows.add(parent)
            parent = self.parents[parent]

    def is_long(self, position: int) -> bool:
        """Whether the first container is still open, and so long that only the ends of whole rows in it matter."""
        return self.ends[0] < 0 and position - self.starts[0] > MAX_WHOLE_BYTES and self.depth + _MAX_ROW_DEPTH < _MAX_DEPTH

    def add_rows(self, firsts: array[int], lasts: array[int], parent: int) -> None:
        """Adds closed elements of an array with nothing but commas between them."""
        if firsts:
            node, count = len(self.starts), len(firsts)
            self.runs[node] = count
            self.children.setdefault(parent, []).extend(range(node, node + count))
            self.starts.extend(firsts)
            self.insides.extend(array("q", (first + 1 for first in firsts)))
            self.ends.extend(lasts)
            self.parents.extend(array("q", [parent]) * count)

    def shift(self, distance: int) -> Tree:
        self.starts, self.insides, self.ends = (
            array("q", (at + distance for at in ats)) for ats in (self.starts, self.insides, self.ends)
        )
        return self

    def is_list_of_texts(self, node: int) -> bool:
        """Whether many elements of an array are too large to be read whole."""
        if node not in self._lists_of_texts:
            elements = self.children[node]
            large = sum(self.ends[element] - self.starts[element] > MAX_WHOLE_BYTES for element in elements)
            self._lists_of_texts[node] = large > _MAX_LARGE_SHARE * len(elements)
        return self._lists_of_texts[node]


def json_tree(text: Text, start: int, end: int) -> Tree:
    """The containers in a JSON text, and its long strings with escapes."""
    tree = Tree()
    node, key, stop = -1, -1, start
    while start < end:
        stop = stop if start < stop else _end_piece(text, start, end)
        if node in tree.arrays and tree.is_long(start):
            start = _read_rows(text, start, stop, tree, node)
        found = _JSON.match(text, start, stop)
        role = found.lastindex if found else None
        if found is None or role == 4:
            first = found.start(4) if found else _skip_plain_members(text, start, stop)
            if found or first == start < stop:
                key = _find_key(text, start, first, key)
                node, key, start = _read_string(text, first, end, tree, node, key)
            else:
                start = first
            continue
        start = found.end()
        if role == 3:
            node = tree.close(node, start)
        else:
            opened = tree.open(*found.span(1), node, start if role == 2 else -1)
            if text[found.end(1) - 1] == _ARRAY_START:
                tree.arrays.add(opened)
            node = node if role == 2 else opened
        key = -1
    _close_all(tree, node, end)
    return tree


def _read_rows(text: Text, start: int, stop: int, tree: Tree, node: int) -> int:
    """Adds elements of an array up to one that is not plain, which begins at the returned position."""
    firsts, lasts = array("q"), array("q")
    while row := _PLAIN_ROW.match(text, start, stop):
        first, last = row.span(1)
        if last - first > MAX_ROW_BYTES:
            break
        firsts.append(first)
        lasts.append(start := last)
    tree.add_rows(firsts, lasts, node)
    return start


def _skip_plain_members(text: Text, start: int, stop: int) -> int:
    found = _PLAIN_MEMBERS.match(text, start, stop)
    return found.end() if found else start


def _read_string(text: Text, first: int, end: int, tree: Tree, node: int, key: int) -> tuple[int, int, int]:
    """Reads a string with escapes or longer than a piece. Returns the open container, the key before its value, and the end.

    An unclosed string extends to the end; otherwise every quotation mark in it would start another search.
    """
    if not (spans := find_groups(_STRING, text, first, end, anchored=True)):
        return node, -1, end
    last = spans[0][1]
    if colon := _COLON.match(text, last, end):
        last = colon.end()
        if not colon[1]:
            return node, first, last
        node = tree.open(first, last, node)
        if text[last - 1] == _ARRAY_START:
            tree.arrays.add(node)
        return node, -1, last
    has_rows = _STRING_OF_ROWS.match(text, first, last) is not None
    is_text = last - first >= MIN_EMBEDDED_BYTES and any(pieces.find(text, escape, first, last) >= 0 for escape in _ESCAPES)
    if has_rows or is_text:
        tree.add_text(key if key >= 0 else first, first + 1, last, node, has_rows=has_rows, is_text=is_text)
    return node, -1, last


def _find_key(text: Text, start: int, end: int, key: int) -> int:
    """The key of the value that begins at `end`, after plain members from `start` on; `key` if there is nothing in between."""
    found = _KEY.match(text, start, end)
    return found.start(1) if found else -1 if bytes(text[start:end]).strip() else key


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
