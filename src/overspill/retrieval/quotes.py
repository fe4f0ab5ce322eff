"""The passages that extractions quoted from stored outputs, checked against the bytes again."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from overspill.decoding import redecode
from overspill.errors import OverspillError
from overspill.record import events
from overspill.record.events import OutputExtracted, Quote
from overspill.store.protocols import Reader, Shelf

Formats: TypeAlias = tuple[str, ...]
Quotes: TypeAlias = Mapping[str, Mapping[Formats, Sequence[Quote]]]
"""By output, and by how its text was decoded, the passages that extractions quoted from it."""


def read_quotes(shelf: Shelf) -> Quotes:
    quotes: defaultdict[str, defaultdict[Formats, list[Quote]]] = defaultdict(lambda: defaultdict(list))
    for event in events.decode_events(shelf.journal()):
        if isinstance(event, OutputExtracted):
            quotes[event.id][event.decoded].extend(event.quotes)
    return quotes


def describe_misquotes(quotes: Mapping[Formats, Sequence[Quote]], reader: Reader) -> str:
    """Empty if every recorded quote is still in the stored bytes, or in the text decoded from them."""
    problems: list[str] = []
    for names, asked in quotes.items():
        if not names:
            wrong, where = sum(not is_quoted(quote, reader) for quote in asked), "it"
        else:
            where = f"the text decoded from it ({', '.join(names)})"
            try:
                decoded = redecode(reader, names)
                wrong = sum(not is_quoted(quote, decoded) for quote in asked)
            except OverspillError as error:
                problems.append(f"quoted passages could not be checked. {error}")
                continue
        if wrong:
            problems.append(f"{wrong} quoted passages are not in {where}")
    return "; ".join(problems)


def quote_spans(spans: Iterable[tuple[int, int]], reader: Reader) -> tuple[Quote, ...]:
    return tuple(Quote(*span, hashlib.sha256(reader.read(*span)).hexdigest()) for span in spans)


def is_quoted(quote: Quote, reader: Reader) -> bool:
    """Whether the bytes at its place are still those that were quoted."""
    return hashlib.sha256(reader.read(quote.start, quote.end)).hexdigest() == quote.sha256
