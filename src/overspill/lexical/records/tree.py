"""Cuts JSON and XML, nested containers, into elements small enough to read."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable

from overspill.lexical.outline import Outline, Table, Text
from overspill.lexical.reading import NEVER_IN_UTF8
from overspill.lexical.records.lines import split_long

_MAX_WHOLE_BYTES = 2_000
"""A larger element is cut into records of its members."""
_MAX_ROW_BYTES = 16_000
"""An element of an array is a row, and is cut only if it is larger than this."""
_MAX_DEPTH = 100
_MIN_EMBEDDED_BYTES = 400
"""A string with escapes is cut like a separate text from this size on."""
_MAX_RUN_BYTES = 700
"""Plain members are grouped up to this size."""

_JSON = re.compile(rb"\"[^\"\\]*+(?:\\.[^\"\\]*+)*+(?:\"(\s*+:)?|(\\?\Z))|([{\[])|([}\]])", re.DOTALL)
"""An unclosed string extends to the end; otherwise every quotation mark in it would start another search."""
_PLAIN_JSON = re.compile(rb"(?:[^\"{}\[\]]++|\"[^\"]*+\"(?!\s*+:\s*+[{\[]))*+(?:((?:\"[^\"]*+\"\s*+:\s*+)?[{\[])|([}\]]))")
_OBJECT_START = re.compile(rb"\{\s*+\"[^\"\\]*+\"\s*+:")
_XML = re.compile(rb"(<!--|<!\[CDATA\[)|<[?!][^>]*+(?:>|\Z)|<[A-Za-z][^<>]*/>|(<[A-Za-z][^<>]*>)|(</[^<>]*>)")
_CLOSES = {b"<!--": b"-->", b"<![CDATA[": b"]]>"}
_ESCAPED = re.compile(rb"\\[n\"]")
_FILL = re.escape(bytes(NEVER_IN_UTF8))
_MEMBER = re.compile(rb",[\s" + _FILL + rb"]*(?=\")|>\s*(?=<)")
_CONTENT = re.compile(rb"[^\s,{}\[\]" + _FILL + rb"]")


class Tree:
    """Containers in document order. A start is where the key or tag begins, an inside where the content begins."""

    def __init__(self) -> None:
        self.starts = array("q")
        self.insides = array("q")
        self.ends = array("q")
        self.parents = array("q")
        self.children: dict[int, list[int]] = {}
        self.arrays: set[int] = set()
        self.texts: set[int] = set()
        self.depth = 0
        self.unopened = 0

    def open(self, start: int, inside: int, parent: int) -> int:
        """Below the maximum depth a container is part of its parent, and only its end must be counted."""
        if self.depth >= _MAX_DEPTH:
            self.unopened += 1
            return parent
        self.depth += 1
        node = len(self.starts)
        self.starts.append(start)
        self.insides.append(inside)
        self.ends.append(-1)
        self.parents.append(parent)
        self.children.setdefault(parent, []).append(node)
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


def json_tree(text: Text, start: int, end: int) -> Tree:
    """The pattern itself skips strings without escapes, which takes a third of the time."""
    tree = Tree()
    plain = text.find(b"\\", start, end) < 0
    node = _containers(tree, text, start, end) if plain else _containers_and_texts(tree, text, start, end)
    _close_all(tree, node, end)
    return tree


def _containers(tree: Tree, text: Text, start: int, end: int) -> int:
    node = -1
    while found := _PLAIN_JSON.match(text, start, end):
        start = found.end()
        if found.lastindex == 2:
            node = tree.close(node, start)
        else:
            node = tree.open(found.start(1), start, node)
            if text[start - 1 : start] == b"[":
                tree.arrays.add(node)
    return node


def _containers_and_texts(tree: Tree, text: Text, start: int, end: int) -> int:
    node, key = -1, -1
    for token in _JSON.finditer(text, start, end):
        role = token.lastindex
        if role == 1:
            key = token.start()
            continue
        if role == 3:
            node = tree.open(key if key >= 0 else token.start(), token.end(), node)
            if token[3] == b"[":
                tree.arrays.add(node)
        elif role == 4:
            node = tree.close(node, token.end())
        elif role is None and token.end() - token.start() >= _MIN_EMBEDDED_BYTES and _ESCAPED.search(text, *token.span()):
            embedded = tree.open(key if key >= 0 else token.start(), token.start() + 1, node)
            if embedded != node:
                tree.texts.add(embedded)
            tree.close(embedded, token.end())
        key = -1
    return node


def find_element_start(window: bytes) -> int:
    """The outermost object that begins in a stretch of JSON, or -1.

    An object whose first key is not escaped is outside strings, so everything after it can be read as JSON.
    """
    first = _OBJECT_START.search(window)
    if not first:
        return -1
    best, depth, least = first.start(), 0, 0
    for token in _JSON.finditer(window, first.start()):
        if token.lastindex == 3:
            if depth < least and _OBJECT_START.match(window, token.start()):
                best, least = token.start(), depth
            depth += 1
        elif token.lastindex == 4:
            depth -= 1
    return best


def xml_tree(text: Text, start: int, end: int) -> Tree:
    tree, node = Tree(), -1
    while token := _XML.search(text, start, end):
        start = token.end()
        if token.lastindex == 1:
            closing = text.find(_CLOSES[token[1]], start, end)
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


def cut_tree(text: Text, tree: Tree, start: int, end: int, outline: Outline, embedded: Callable[[int, int], None]) -> None:
    """Depth first with a stack of (node, label, position reached, next child), because nesting is unlimited.

    `embedded` cuts the content of a string that is a text itself.
    """
    stack = [(-1, -1, start, 0)]
    firsts: dict[int, int] = {}
    while stack:
        node, label, position, number = stack.pop()
        children = tree.children.get(node, [])
        child = children[number] if number < len(children) else -1
        before = len(outline)
        _record_plain_members(text, position, _end_of_plain(tree, node, child, end), label, outline)
        if node in tree.arrays and len(outline) > before:
            outline.uncounted.add(label)
        firsts.setdefault(node, len(outline))
        if child < 0:
            _note_table(tree, node, firsts[node], outline)
            continue
        stack.append((node, label, tree.ends[child], number + 1))
        if child in tree.texts:
            outer, outline.base = outline.base, outline.label(tree.starts[child], tree.insides[child], label)
            embedded(tree.insides[child], tree.ends[child] - 1)
            outline.base = outer
        elif _is_whole(tree, child):
            outline.record(tree.starts[child], tree.ends[child], label)
        else:
            inner = outline.label(tree.starts[child], tree.insides[child], label)
            stack.append((child, inner, tree.insides[child], 0))


def _end_of_plain(tree: Tree, node: int, child: int, end: int) -> int:
    if child >= 0:
        return tree.starts[child]
    return tree.ends[node] if node >= 0 else end


def _is_whole(tree: Tree, node: int) -> bool:
    children = tree.children.get(node, [])
    limit = _MAX_ROW_BYTES if tree.parents[node] in tree.arrays else _MAX_WHOLE_BYTES
    if tree.ends[node] - tree.starts[node] > limit or any(child in tree.texts for child in children):
        return False
    return node not in tree.arrays or len(children) < 2


def _note_table(tree: Tree, node: int, first: int, outline: Outline) -> None:
    """An array, or a text of documents, is a table if each element became one record; its rows name their fields."""
    rows = len(tree.children.get(node, ()))
    if (node < 0 or node in tree.arrays) and rows >= 3 and len(outline) - first == rows:
        outline.tables.append(Table(first, first + rows, -1, "json"))


def _record_plain_members(text: Text, start: int, end: int, label: int, outline: Outline) -> None:
    """Records members that are not containers: strings, numbers, text between tags."""
    if not _CONTENT.search(text, start, end):
        return
    run = start
    for member in _MEMBER.finditer(text, start, end):
        if member.end() - run > _MAX_RUN_BYTES:
            _split(text, run, member.end(), label, outline)
            run = member.end()
    _split(text, run, end, label, outline)


def _split(text: Text, start: int, end: int, label: int, outline: Outline) -> None:
    for part in split_long(text, start, end, _MAX_WHOLE_BYTES // 2):
        if _CONTENT.search(text, *part):
            outline.record(*part, label)
