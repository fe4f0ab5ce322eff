"""The card of JSON: a table if most of it is one, otherwise an outline."""

from __future__ import annotations

import json

from overspill.errors import BadRequest
from overspill.gate.cards.card import Card, Section, indent
from overspill.gate.cards.json_rows import find_json_tables, mend_json
from overspill.gate.cards.outline import make_json_outline_card
from overspill.gate.cards.sample import OutputSample, Read
from overspill.gate.cards.table import make_table_card, read_json_tables
from overspill.lexical.kinds.kind import Layout
from overspill.reading.query.document import documents, open_raw
from overspill.text.encoding import decode
from overspill.text.lines import line_number

_MAX_PARSED_BYTES = 4 << 20
"""JSON up to this size is read whole: parsing it takes no longer than the engine takes for a sample."""
_SHOWN_AFTER_LINES = 8


def make_json_card(read: Read, sample: OutputSample, layout: Layout) -> tuple[Card, OutputSample, bool] | None:
    """None if the text is not JSON, or only begins like it. Also returns what was read, and whether that is everything."""
    if layout not in ("document", "documents"):
        return None
    size = sample.size
    if size.bytes <= _MAX_PARSED_BYTES:
        text = decode(read(0, size.bytes))
        if (card := _describe(text, is_whole=True)) is None:
            card = _describe_first_document(text)
        return None if card is None else (card, sample, True)
    beginning = OutputSample(sample.windows[:1], size)
    data = beginning.data if layout == "documents" else mend_json(beginning.data)
    card = _describe(decode(data), is_whole=False)
    return None if card is None else (card, beginning, False)


def _describe(text: str, *, is_whole: bool) -> Card | None:
    try:
        found = documents(text)
        if len(found) == 1:  # opened once, not by everyone who looks into it
            found = [open_raw(found[0])]
        if tables := read_json_tables(find_json_tables(found), len(text)):
            return make_table_card(tables, is_whole=is_whole)
        return make_json_outline_card(found, is_whole=is_whole) if found else None
    except (BadRequest, RecursionError):
        return None


def _describe_first_document(text: str) -> Card | None:
    """For JSON that something else follows, such as a program's warnings."""
    start = len(text) - len(text.lstrip("\ufeff \t\r\n"))
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    card = _describe(text[:end], is_whole=True)
    if card is None:
        return None
    rest = text[end:].lstrip()
    place = line_number(text, len(text) - len(rest))
    after = indent("\n".join(rest[:4000].split("\n")[:_SHOWN_AFTER_LINES])).split("\n")
    return Card(
        [*card.sections, Section(f"Something else follows it from line {place:,} on", after, first=2, rank=1)], card.steps
    )
