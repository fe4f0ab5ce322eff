"""JSON and XML: cuts nested elements until they are small enough to read, and finds those that are rows of tables."""

from __future__ import annotations

from overspill.lexical import reading
from overspill.lexical.kinds.kind import CutEmbedded, Kind, Sample, Traits
from overspill.lexical.kinds.lines import find_first, split_long
from overspill.lexical.kinds.tree import (
    MAX_ROW_BYTES,
    MAX_WHOLE_BYTES,
    MIN_EMBEDDED_BYTES,
    Tree,
    find_element_start,
    json_tree,
    xml_tree,
)
from overspill.lexical.outline import Outline, Table
from overspill.tables.json_rows import split_member
from overspill.tables.json_tables import MIN_ROWS, Shape, find_apart, find_shape, read_grid, read_names
from overspill.tables.json_text import begin_json, find_start, mask_literal
from overspill.tables.table import JsonRows, Text
from overspill.text import pieces
from overspill.text.lines import FILLERS, is_blank, iterate_lines
from overspill.text.patterns import compile_pattern, find_spans
from overspill.text.regex import escape, regex

_MAX_MEMBER_BYTES = 1_000
"""The longest record for a member that is not a container."""
_MAX_RUN_BYTES = 700
"""Plain members are grouped up to this size."""
_MAX_HOLDERS = 2
"""How many elements of an array may hold rows in their strings, as MCP results do. More of them are rows themselves."""
_FILL = escape(FILLERS)
_MEMBER = compile_pattern(rb",[\s\v" + _FILL + rb"]*\"|>[\s\v]*<")
CONTENT = regex(rb"[^\s,{}\[\]" + _FILL + rb"]")


def record_plain_members(text: Text, start: int, end: int, label: int, outline: Outline) -> None:
    """Records members that are not containers: strings, numbers, text between tags."""
    run = start
    for _, position in find_spans(_MEMBER, text, start, end) if end - start > _MAX_RUN_BYTES else ():
        if position - 1 - run > _MAX_RUN_BYTES:
            _split(text, run, position - 1, label, outline)
            run = position - 1
    _split(text, run, end, label, outline)


def _split(text: Text, start: int, end: int, label: int, outline: Outline) -> None:
    for part in split_long(text, start, end, _MAX_MEMBER_BYTES):
        if CONTENT.search(text, *part):
            outline.record(*part, label)


_MAX_COMPARED = 20
"""How many members of an object to compare to see whether they are rows."""


def cut_tree(text: Text, tree: Tree, start: int, end: int, outline: Outline, embedded: CutEmbedded) -> None:
    """Depth first with a stack of (node, label, position reached, next child), because nesting is unlimited.

    `embedded` cuts embedded text: the content of a string.
    """
    stack = [(-1, -1, start, 0)]
    firsts: dict[int, int] = {}
    while stack:
        node, label, position, number = stack.pop()
        children, is_array = tree.children.get(node, []), node in tree.arrays
        while True:
            child = children[number] if number < len(children) else -1
            end_of_plain = tree.starts[child] if child >= 0 else tree.ends[node] if node >= 0 else end
            if CONTENT.search(text, position, end_of_plain):
                record_plain_members(text, position, end_of_plain, label, outline)
                if is_array:
                    outline.uncounted.add(label)
            if number == 0:
                firsts[node] = len(outline)
            if child < 0:
                _note_table(text, tree, node, firsts[node], outline)
                break
            if count := tree.runs.get(child):
                last = child + count
                outline.add_records(tree.starts[child:last], tree.ends[child:last], label)
                position, number = tree.ends[last - 1], number + count
                continue
            first, inside, position, number = tree.starts[child], tree.insides[child], tree.ends[child], number + 1
            if child in tree.texts or child in tree.short_texts:
                outer, outline.base = outline.base, outline.label(first, inside, label)
                embedded(inside, position - 1)
                outline.base = outer
            elif _is_whole(text, tree, child):
                outline.record(first, position, label)
            else:
                stack += ((node, label, position, number), (child, outline.label(first, inside, label), inside, 0))
                break


def _is_whole(text: Text, tree: Tree, node: int) -> bool:
    children = tree.children.get(node, ())
    if not children and node not in tree.arrays:
        return tree.ends[node] - tree.starts[node] <= (MAX_ROW_BYTES if tree.parents[node] in tree.arrays else MAX_WHOLE_BYTES)
    is_row, has_text = tree.parents[node] in tree.arrays, not tree.texts.isdisjoint(children)
    if not is_row and (has_text or node in tree.around_rows):
        return False
    if node in tree.around_rows and len(tree.children[tree.parents[node]]) <= _MAX_HOLDERS:
        return False
    is_short = is_row and not (has_text and tree.is_list_of_texts(tree.parents[node]))
    if tree.ends[node] - tree.starts[node] > (MAX_ROW_BYTES if is_short else MAX_WHOLE_BYTES):
        return False
    if node in tree.arrays:
        return len(children) < 2 and _find_shape(text, tree, tree.parents[node]) != "lists"
    if not is_row and tree.ends[0] - tree.starts[0] <= MAX_WHOLE_BYTES and _holds_list(tree, node):
        return False  # a short document, whose tables are short
    return is_row or not _find_shape(text, tree, node)


def _holds_list(tree: Tree, node: int) -> bool:
    return any(len(tree.children.get(each, ())) >= MIN_ROWS or _holds_list(tree, each) for each in tree.children.get(node, ()))


def _note_table(text: Text, tree: Tree, node: int, first: int, outline: Outline) -> None:
    """An array, an object of rows or a run of documents is a table if each element became one record."""
    rows = tree.children.get(node, [])
    shape = _find_shape(text, tree, node) if node >= 0 and node not in tree.arrays else "members"
    if shape == "lists":
        rows = [row for member in rows for row in tree.children.get(member, ())]
    if not shape or len(rows) < MIN_ROWS or len(outline) - first != len(rows):
        return
    names = _find_names(text, tree, node) if rows[0] in tree.arrays else ()
    if rows[0] in tree.arrays and not names and node >= 0:
        names = read_grid(_read_span(text, tree.insides[node] - 1, tree.ends[node]))
        first, rows = (first + 1, rows[1:]) if names else (first, rows)  # the record with the names
    if names or rows[0] not in tree.arrays:
        while outline.tables and outline.tables[-1].first >= first:
            outline.tables.pop()  # one of the lists
        outline.tables.append(Table(first, first + len(rows), -1, JsonRows(names, are_lists=shape == "lists")))


def _find_names(text: Text, tree: Tree, node: int) -> tuple[str, ...]:
    """The column names for an array of lists of cells, from another member of the object around it."""
    members = tree.children.get(tree.parents[node], ()) if node in tree.arrays else ()
    keys = {split_member(_read_span(text, tree.starts[each], tree.insides[each]))[0]: each for each in members}
    names, cells = find_apart(keys)
    if not names or keys.get(cells) != node:
        return ()
    spans = ((tree.insides[each] - 1, tree.ends[each]) for each in (keys[names], tree.children[node][0]))
    spelt, row = (_read_span(text, *span) for span in spans)
    return read_names(spelt, b"[%b]" % row)


def _read_span(text: Text, start: int, end: int) -> bytes:
    return bytes(text[start:end]).translate(None, FILLERS)


def _find_shape(text: Text, tree: Tree, node: int) -> Shape | None:
    """The shape of an object that contains only rows or lists of rows, by their keys."""
    if node not in tree.shapes:
        members = tree.children.get(node, [])
        compared = [_read_row(text, tree, member) for member in members[:_MAX_COMPARED]] if len(members) >= MIN_ROWS else []
        is_plain = not compared or CONTENT.search(text, tree.insides[node], tree.starts[members[0]])
        are_mixed = len({member in tree.arrays for member in members}) > 1
        tree.shapes[node] = None if is_plain or are_mixed or b"" in compared else find_shape(compared)
    return tree.shapes[node]


def _read_row(text: Text, tree: Tree, member: int) -> bytes:
    """The member or, if it is an array, its first row. Empty if it is too long to be a row."""
    first = next(iter(tree.children.get(member, ())), member) if member in tree.arrays else member
    start, end = (tree.starts[first] if first != member else tree.insides[member] - 1), tree.ends[first]
    row = _read_span(text, start, end) if end - start <= MAX_ROW_BYTES else b""
    return b"[%b]" % row if row and first != member else row


_NEXT_OBJECT = regex(rb"[}\]][^\S\n]*+\n(?:[^\n{}\[\]]{1,400}+\n)?+\s*+[{\[]")
"""The end of an object and the beginning of the next, perhaps with a line of other text between them."""
_ESCAPED_LETTER = b"\\u"


def _is_json(sample: Sample) -> bool:
    return find_start(sample.head, sample.ending) >= 0


def _is_ndjson(sample: Sample) -> bool:
    """Whether the first element ends on the first line and another follows."""
    if not _is_json(sample):
        return False
    first_end, opening = _NEXT_OBJECT.search(sample.head), sample.head.find(b"\n")
    return first_end is not None and first_end.start() <= opening


def _cut_lines(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    """Each line is a row, whether it can be read or not. The rows are a table unless one of them was cut."""
    first, rows = len(outline), 0
    for span in iterate_lines(text, start, end):
        if is_blank(bytes(text[slice(*span)])):
            continue
        rows += 1
        tree = _find_parts(text, *span)
        if tree:
            cut_tree(text, tree, *span, outline, cut_embedded)
        else:
            outline.record(*span)
    if len(outline) - first == rows >= MIN_ROWS:
        outline.tables.append(Table(first, len(outline), -1, JsonRows()))


def _find_parts(text: Text, start: int, end: int) -> Tree | None:
    """The parts of a row that is too long to be read whole, or that contains embedded text."""
    has_text = end - start >= MIN_EMBEDDED_BYTES and pieces.find(text, b"\\", start, end) >= 0
    tree = json_tree(text, start, end) if has_text or end - start > MAX_WHOLE_BYTES else None
    return tree if tree and (tree.texts or end - start > MAX_WHOLE_BYTES) else None


def _cut_json(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    inside, is_literal = begin_json(text, start, end)
    if is_literal:
        masked = mask_literal(bytes(text[inside:end]))
        tree = json_tree(masked, 0, len(masked)).shift(inside)
    else:
        tree = json_tree(text, inside, end)
    cut_tree(text, tree, start, end, outline, cut_embedded)


def _read(text: Text, size: int, fill: bytes) -> Text:
    return reading.spell_letters(text, 0, size, fill) if pieces.find(text, _ESCAPED_LETTER, 0, size) >= 0 else text


JSON = Kind(
    "json",
    _is_json,
    _cut_json,
    Traits(is_celled=True, has_members=True, has_string_escapes=True, memory_per_byte=6, layout="document"),
    _read,
    find_element_start,
)
NDJSON = Kind(
    "ndjson",
    _is_ndjson,
    _cut_lines,
    Traits(
        is_celled=True,
        is_program_output=True,
        has_telling_lines=True,
        has_string_escapes=True,
        memory_per_byte=6,
        layout="documents",
    ),
    _read,
)


_XML = regex(rb"\s*+(?:<\?xml\b|<[A-Za-z][\w:.-]*+(?:\s[^<>]*+)?>)")
_CLOSED = regex(rb"</[A-Za-z][\w:.-]*>|/>")
_MAX_BYTES_PER_END = 1_000


def _is_xml(sample: Sample) -> bool:
    """Must be tried after HTML, which may begin the same way."""
    head = sample.head
    return head.lstrip()[:5] == b"<?xml" or (
        _XML.match(head) is not None and len(_CLOSED.findall(head)) * _MAX_BYTES_PER_END > len(head)
    )


_XML_STARTS = regex(rb"</[^<>]*>\s*+(?=<[A-Za-z])"), regex(rb">\s*+(?=<)")
XML = Kind(
    "xml",
    _is_xml,
    lambda text, start, end, outline, embedded: cut_tree(text, xml_tree(text, start, end), start, end, outline, embedded),
    Traits(memory_per_byte=6, layout="elements"),
    find_start=find_first(*_XML_STARTS),
)
