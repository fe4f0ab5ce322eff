"""Makes the card of a stored output: the engine says what kind of text it is, and one of three makers describes it."""

from __future__ import annotations

from overspill.gate.cards.card import Card, Section
from overspill.gate.cards.json_card import make_json_card
from overspill.gate.cards.log import make_log_card
from overspill.gate.cards.outline import make_outline_card
from overspill.gate.cards.sample import OutputSample, Read, take_sample
from overspill.gate.cards.table import make_table_card, read_line_tables
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
"""Those that are not called by their kind."""
_MAX_LINE_BYTES = 1_000
"""The average length of lines up to which text is described line by line."""
_QUOTE = b'"'
_MAX_RECOGNISED_LINES = 80
"""At the beginning and in the middle."""
_TABLE_LAYOUTS: tuple[Layout, ...] = ("rows", "aligned", "paragraphs")
"""Those that may be tables with a row on each line."""


def make_card(read: Read, size: Size) -> Card:
    """`read` gives the stored bytes from one position to another. At most a few MB of them are read."""
    sample = take_sample(read, size)
    kind = recognise(sample.data, most_lines=_MAX_RECOGNISED_LINES)
    layout = kind.traits.layout
    if (found := make_json_card(read, sample, layout)) is not None:
        card, sample, is_whole = found
        return _put_title(card, sample, kind, is_whole=is_whole)
    if layout == "rows" and not sample.is_whole and _QUOTE in sample.data:
        # A later window may begin inside a cell of several lines.
        sample = OutputSample(sample.windows[:1], size)
    if layout in _TABLE_LAYOUTS and (tables := read_line_tables(sample, kind)):
        return _put_title(make_table_card(tables, is_whole=sample.is_whole), sample, kind, is_whole=sample.is_whole)
    has_lines = size.bytes <= _MAX_LINE_BYTES * size.lines
    if layout == "events" and has_lines:
        return _put_title(make_log_card(sample, kind), sample, kind, is_whole=sample.is_whole)
    card, sample = make_outline_card(sample, kind)
    return _put_title(card, sample, kind, is_whole=sample.is_whole)


def _say_where(sample: OutputSample) -> str:
    if len(sample.windows) == 1:
        return "at the beginning"
    places = f"in {len(sample.windows)} places"
    return f"{places} from beginning to end" if sample.has_end else f"{places}. The last line is too long to be among them"


def _put_title(card: Card, sample: OutputSample, kind: Kind, *, is_whole: bool) -> Card:
    size = sample.size
    named = card.kind or _TITLES.get(kind.traits.layout, kind.name)
    title = f"{named}, {count_noun(size.lines, 'line')}, {format_size(size.bytes)}"
    if not is_whole:
        title += f". Sampled: everything below is of {format_size(len(sample.data))} {_say_where(sample)}"
    return Card([Section(title), *card.sections], card.steps)
