"""The card of JSON: a table if most of it is one, otherwise an outline."""

from __future__ import annotations

from msgspec import Raw

from overspill.errors import BadRequest
from overspill.gate.cards.card import Card, Section, indent
from overspill.gate.cards.outline import make_json_outline_card
from overspill.gate.cards.sample import OutputSample, Read
from overspill.gate.cards.table import make_table_card, read_json_tables
from overspill.lexical.kinds.kind import Layout
from overspill.lexical.records.tree import json_tree
from overspill.reading.query.document import open_raw
from overspill.tables.json_rows import UNREADABLE
from overspill.tables.json_text import HeldJson, hold_json
from overspill.tables.literals import is_literal, mask_literal
from overspill.text.encoding import decode
from overspill.text.lines import count_line_ends

_MAX_PARSED_BYTES = 4 << 20
"""JSON up to this size is read whole: parsing it takes no longer than the engine takes for a sample."""
_SHOWN_AROUND_LINES = 8


def make_json_card(read: Read, sample: OutputSample, layout: Layout) -> tuple[Card, OutputSample, bool] | None:
    """None if the text is not JSON, or only begins like it. Also returns what was read, and whether that is everything."""
    if layout not in ("document", "documents"):
        return None
    size = sample.size
    if size.bytes <= _MAX_PARSED_BYTES:
        card = _describe(read(0, size.bytes), is_whole=True)
        return None if card is None else (card, sample, True)
    beginning = OutputSample(sample.windows[:1], size)
    card = _describe(beginning.data if layout == "documents" else _mend(beginning.data), is_whole=False)
    return None if card is None else (card, beginning, False)


def _describe(data: bytes, *, is_whole: bool) -> Card | None:
    try:
        held = hold_json(data)
        if tables := read_json_tables(held, len(data)):
            card = make_table_card(tables, is_whole=is_whole)
        else:
            found = [Raw(document) for document in held.documents]
            # Opened once, not by everyone who looks into it.
            card = make_json_outline_card([open_raw(found[0])] if len(found) == 1 else found, is_whole=is_whole)
    except (BadRequest, *UNREADABLE):
        return None
    return Card([*card.sections, *_show_around(data, held)], card.steps) if card else None


def _show_around(data: bytes, held: HeldJson) -> list[Section]:
    """Such as the words that a program puts above JSON, or its warnings below."""
    place = count_line_ends(data[: data.rfind(held.after[:99])]) + 1 if held.after else 0
    said = ((held.before, "Something else is above it"), (held.after, f"Something else follows it from line {place:,} on"))
    return [
        Section(title, indent("\n".join(decode(text[:4000]).split("\n")[:_SHOWN_AROUND_LINES])).split("\n"), first=2, rank=1)
        for text, title in said
        if text
    ]


def _mend(head: bytes) -> bytes:
    """The beginning of a JSON document, without what is cut off, and closed. Empty if nothing in it is whole."""
    tree = json_tree(mask_literal(head) if is_literal(head) else head, 0, len(head))
    whole = [node for node in range(len(tree.starts)) if tree.ends[node] < len(head)]
    last = max(whole, key=lambda node: tree.ends[node], default=-1)
    if last < 0:
        return b""
    closing = bytearray()
    node = tree.parents[last]
    while node >= 0:
        closing += b"]" if node in tree.arrays else b"}"
        node = tree.parents[node]
    return head[: tree.ends[last]] + bytes(closing)
