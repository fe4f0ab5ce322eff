"""Makes the card of a stored output: the engine recognises the kind of text, and one of four makers describes it."""

from __future__ import annotations

from msgspec.structs import replace

from overspill.gate.cards.card import Card, Section
from overspill.gate.cards.json_card import make_json_card
from overspill.gate.cards.log import make_log_card
from overspill.gate.cards.outline import make_outline_card
from overspill.gate.cards.sample import MAX_WHOLE_BYTES, OutputSample, Read, take_sample
from overspill.gate.cards.table import make_table_card, read_text_tables
from overspill.lexical.kinds import recognise
from overspill.lexical.kinds.kind import Kind, Layout
from overspill.text.humanize import count_noun, format_size
from overspill.types import Size

_TITLES: dict[Layout, str] = {
    "document": "JSON",
    "documents": "JSON lines",
    "rows": "delimited rows",
    "elements": "XML",
    "page": "HTML",
    "events": "text",
    "results": "search results",
}
"""Names for layouts that differ from the name of the kind."""
_MAX_LINE_BYTES = 1_000
"""Text with longer lines on average is not described line by line."""
_MAX_RECOGNISED_LINES = 50


def make_card(read: Read, size: Size) -> Card:
    """`read` returns the stored bytes between two positions. At most a few MB are read."""
    sample = take_sample(read, size)
    kind = recognise(sample.excerpt, most_lines=_MAX_RECOGNISED_LINES)
    card = _describe(read, sample, kind)
    named = card.kind or _TITLES.get(kind.traits.layout, kind.name)
    title = f"{named}, {count_noun(size.lines, 'line')}, {format_size(size.bytes)}"
    if not card.read.is_whole:
        where = f"in {len(card.read.windows)} places" if len(card.read.windows) > 1 else "at the beginning"
        if len(card.read.windows) > 1:
            where += " from beginning to end" if card.read.has_end else ". The last line is too long to be among them"
        title += f". Sampled: everything below is of {format_size(len(card.read.data))} {where}"
    return replace(card, sections=[Section(title), *card.sections])


def _describe(read: Read, sample: OutputSample, kind: Kind) -> Card:
    layout, size = kind.traits.layout, sample.size
    if layout in ("document", "documents") and (card := make_json_card(read, sample, layout)):
        return card
    if layout in ("rows", "aligned", "paragraphs", "page") and (card := make_table_card(*read_text_tables(sample, layout))):
        return card
    if layout == "events" and size.bytes <= _MAX_LINE_BYTES * size.lines:
        return make_log_card(take_sample(read, size, seeks_failure=True) if size.bytes > MAX_WHOLE_BYTES else sample)
    return make_outline_card(sample, kind)
