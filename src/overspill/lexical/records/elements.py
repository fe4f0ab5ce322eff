"""Cuts the elements of a tree into records, and notes which of them are the rows of tables."""

from __future__ import annotations

from collections.abc import Callable

from overspill.lexical.outline import Outline, Table
from overspill.lexical.records.members import CONTENT, record_plain_members
from overspill.lexical.records.tree import MAX_WHOLE_BYTES, Tree
from overspill.tables.json_tables import MIN_ROWS, Shape, find_shape
from overspill.tables.table import JsonRows, Text
from overspill.text.lines import FILLERS

_MAX_ROW_BYTES = 16_000
"""An element of an array is a row, and is cut only if it is larger than this, or than the above if it has a long string and
the array is a list of texts."""
_MAX_COMPARED = 20
"""Members of an object, to see whether they are rows."""


def cut_tree(text: Text, tree: Tree, start: int, end: int, outline: Outline, embedded: Callable[[int, int], None]) -> None:
    """Depth first with a stack of (node, label, position reached, next child), because nesting is unlimited.

    `embedded` cuts the content of a string that is a text itself.
    """
    stack = [(-1, -1, start, 0)]
    firsts: dict[int, int] = {}
    while stack:
        node, label, position, number = stack.pop()
        children, is_array = tree.children.get(node, []), node in tree.arrays
        while True:
            child = children[number] if number < len(children) else -1
            before = len(outline)
            record_plain_members(text, position, _end_of_plain(tree, node, child, end), label, outline)
            if is_array and len(outline) > before:
                outline.uncounted.add(label)
            if number == 0:
                firsts[node] = len(outline)
            if child < 0:
                _note_table(text, tree, node, firsts[node], outline)
                break
            first, inside, position, number = tree.starts[child], tree.insides[child], tree.ends[child], number + 1
            if child in tree.texts:
                outer, outline.base = outline.base, outline.label(first, inside, label)
                embedded(inside, position - 1)
                outline.base = outer
            elif _is_whole(text, tree, child):
                outline.record(first, position, label)
            else:
                stack += ((node, label, position, number), (child, outline.label(first, inside, label), inside, 0))
                break


def _end_of_plain(tree: Tree, node: int, child: int, end: int) -> int:
    if child >= 0:
        return tree.starts[child]
    return tree.ends[node] if node >= 0 else end


def _is_whole(text: Text, tree: Tree, node: int) -> bool:
    children = tree.children.get(node, ())
    is_row, has_text = tree.parents[node] in tree.arrays, not tree.texts.isdisjoint(children)
    if has_text and not is_row:
        return False
    is_short = is_row and not (has_text and tree.is_list_of_texts(tree.parents[node]))
    if tree.ends[node] - tree.starts[node] > (_MAX_ROW_BYTES if is_short else MAX_WHOLE_BYTES):
        return False
    if node in tree.arrays:
        return len(children) < 2 and _find_shape(text, tree, tree.parents[node]) != "lists"
    return is_row or not _find_shape(text, tree, node)


def _note_table(text: Text, tree: Tree, node: int, first: int, outline: Outline) -> None:
    """An array, a text of documents or an object of rows is a table if each element became one record."""
    rows = tree.children.get(node, [])
    shape = _find_shape(text, tree, node) if node >= 0 and node not in tree.arrays else "members"
    if shape == "lists":
        rows = [row for member in rows for row in tree.children.get(member, ())]
    if shape and len(rows) >= MIN_ROWS and len(outline) - first == len(rows) and rows[0] not in tree.arrays:
        while outline.tables and outline.tables[-1].first >= first:
            outline.tables.pop()  # one of the lists
        outline.tables.append(Table(first, first + len(rows), -1, JsonRows(are_lists=shape == "lists")))


def _find_shape(text: Text, tree: Tree, node: int) -> Shape | None:
    """Of an object that has nothing but rows or lists of rows, by their keys."""
    if node not in tree.shapes:
        members = tree.children.get(node, [])
        compared = [_read_row(text, tree, member) for member in members[:_MAX_COMPARED]] if len(members) >= MIN_ROWS else []
        is_plain = not compared or CONTENT.search(text, tree.insides[node], tree.starts[members[0]])
        are_mixed = len({member in tree.arrays for member in members}) > 1
        tree.shapes[node] = None if is_plain or are_mixed or b"" in compared else find_shape(compared)
    return tree.shapes[node]


def _read_row(text: Text, tree: Tree, member: int) -> bytes:
    """Of an array, the first row. Empty if it is too long to be one."""
    first = next(iter(tree.children.get(member, ())), member) if member in tree.arrays else member
    start, end = (tree.starts[first] if first != member else tree.insides[member] - 1), tree.ends[first]
    row = bytes(text[start:end]).translate(None, FILLERS) if end - start <= _MAX_ROW_BYTES else b""
    return b"[%b]" % row if row and first != member else row
