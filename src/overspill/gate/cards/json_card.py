"""The card of JSON: a table if most of it is one, otherwise its shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from heapq import nlargest
from itertools import chain, islice, takewhile
from typing import Any

from msgspec import Raw

from overspill.errors import BadRequest
from overspill.gate.cards.card import Card, Count, Section, indent, make_visible
from overspill.gate.cards.sample import MAX_WHOLE_BYTES, OutputSample, Read, Window
from overspill.gate.cards.table import (
    MAX_COLUMNS,
    MAX_EXAMPLES,
    MAX_TABLES,
    MIN_TABLE_SHARE,
    ReadTable,
    draw_rows,
    make_table_card,
)
from overspill.lexical.kinds.kind import Layout
from overspill.reading.query.document import DETAIL_LEVELS, Value, is_object, open_raw, outline_levels
from overspill.tables.json_rows import read_cells, write_cell
from overspill.tables.json_tables import MIN_ROWS, find_json_tables, find_shape, hold_documents
from overspill.tables.json_text import HeldJson
from overspill.text.encoding import decode
from overspill.text.lenient_json import UNREADABLE
from overspill.text.lines import count_line_ends
from overspill.text.regex import regex

_MAX_PARSED_BYTES = 4 << 20
"""JSON up to this size is read whole: parsing it takes no longer than the engine takes for a sample."""
_STRING_OR_BRACKET = regex(rb"(?s)\"(?:[^\"\\]++|\\.)*+\"?|'(?:[^'\\]++|\\.)*+'?|[\[\]{}]")
_SHOWN_AROUND_LINES = 8
_MAX_JSON_CELLS = 6_000
"""Up to this many cells, all are read, which is faster than for other tables."""
_MAX_CHARS_PER_TOKEN = 16
"""Longer text almost certainly has too many tokens, and is not counted."""


def make_json_card(read: Read, sample: OutputSample, layout: Layout) -> Card | None:
    """The card of a JSON text; None if the text is not JSON or only begins like it."""
    size = sample.size
    if size.bytes <= _MAX_PARSED_BYTES:
        part = OutputSample((Window(0, read(0, size.bytes)),), size) if size.bytes > MAX_WHOLE_BYTES else sample
        data = part.data
    else:
        part = OutputSample(sample.windows[:1], size)
        data = part.data if layout == "documents" else _mend(part.data)
    try:
        held = hold_documents(data, layout)
        if not held.documents:
            return None
        is_one = len(held.documents) == 1
        root = open_raw(Raw(held.documents[0])) if is_one and data[:1] != b"[" else Raw(held.documents[0])
        may_hold_tables = not is_object(root) or _may_hold_tables(list(root.values()), len(data))
        card = make_table_card(read_json_tables(held, len(data)) if may_hold_tables else [], part)
        card = card or _outline([open_raw(root)] if is_one else list(map(Raw, held.documents)), part)
    except (BadRequest, *UNREADABLE):
        return None
    if card is None:
        return None
    # For example, a program's words above the JSON, or its warnings below.
    place = count_line_ends(data[: data.rfind(held.after[:99])]) + 1 if held.after else 0
    said = ((held.before, "Something else is above it"), (held.after, f"Something else follows it from line {place:,} on"))
    around = [
        Section(title, indent("\n".join(decode(text[:4000]).split("\n")[:_SHOWN_AROUND_LINES])).split("\n"), first=2)
        for text, title in said
        if text
    ]
    return Card([*card.sections, *around], part, steps=card.steps)


def read_json_tables(held: HeldJson, total: int) -> list[ReadTable]:
    """The tables, if they make up most of the `total` bytes."""
    found = list(islice(find_json_tables(held.documents), MAX_TABLES + 1))
    tables = [(table, rows) for table in found if len(rows := list(table.rows())) >= MIN_ROWS]
    inside = sum(sum(map(len, table.documents)) if table.documents else len(table.raw) for table, _ in tables)
    if len(found) > MAX_TABLES or inside <= MIN_TABLE_SHARE * total:
        return []
    read: list[ReadTable] = []
    for table, all_rows in tables:
        first = [read_cells(raw, key) for _, raw, key in all_rows[:MAX_EXAMPLES]]
        drawn = [all_rows[number] for number in draw_rows(len(all_rows), len(first[0]), _MAX_JSON_CELLS)]
        rows = [read_cells(raw, key) for _, raw, key in drawn]
        names = list(dict.fromkeys(chain.from_iterable((*first, *rows))))
        examples = [[row.get(key) for key in names[:MAX_COLUMNS]] for row in first]
        read.append(
            ReadTable(
                table.pointer,
                len(all_rows),
                names,
                [[row.get(key) for row in rows] for key in names[:MAX_COLUMNS]],
                [" | ".join("" if cell is None else write_cell(cell) for cell in row) for row in examples],
                len(rows),
                is_json=True,
                omissions=held.omissions if held.unread else (),
                can_query=not held.around and not held.is_converted and table.shape in ("list", "documents"),
            )
        )
    return read


def _may_hold_tables(members: Sequence[Any], total: int) -> bool:
    """Whether the members of an object are alike, or the largest of them make up most of the text."""
    return (
        find_shape(members) is not None or sum(nlargest(MAX_TABLES, map(len, map(memoryview, members)))) > MIN_TABLE_SHARE * total
    )


def _outline(found: Sequence[Value], part: OutputSample) -> Card | None:
    """A card with an outline of JSON; None if the text has no structure."""
    levels = outline_levels(found, DETAIL_LEVELS[::-1])
    shapes = [_indent(shape) for shape in islice(levels, 1)]

    def draft() -> Iterator[str]:
        """Yields the shapes drafted for another size first, then new ones, down to a level that cannot be read."""
        yield from shapes
        with suppress(*UNREADABLE):
            for shape in map(_indent, levels):
                shapes.append(shape)
                yield shape

    def fit(room: int, count: Count) -> list[str]:
        fitting = takewhile(lambda shape: len(shape) <= _MAX_CHARS_PER_TOKEN * room and count(shape) <= room, draft())
        return list(fitting)[-1:]

    return Card([Section("shape" if part.is_whole else "shape of what was read", fit=fit)], part) if shapes else None


def _indent(shape: str) -> str:
    return "\n".join(f" {make_visible(line)}" for line in shape.split("\n"))


def _mend(head: bytes) -> bytes:
    """Closes the beginning of a JSON document after its last whole member. Empty if it has none."""
    ends, end, depth = bytearray(), 0, 0
    for token in _STRING_OR_BRACKET.finditer(head):
        if token[0] in (b"[", b"{"):
            ends += b"]" if token[0] == b"[" else b"}"
        elif token[0] in (b"]", b"}") and ends:
            ends.pop()
            end, depth = token.end(), len(ends)
    return head[:end] + bytes(ends[:depth][::-1])
