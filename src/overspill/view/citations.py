"""An extraction with its quotes, each checked against the stored bytes when somebody looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from overspill.decoding import redecode
from overspill.errors import HandleError, OverspillError
from overspill.reading.positions import View
from overspill.record.events import Entry, ModelCalled, OutputExtracted, OutputRetrieved, Quote, RecordedReply
from overspill.retrieval.archive import ArchivedOutput
from overspill.retrieval.quotes import is_quoted
from overspill.store.protocols import Reader
from overspill.text.encoding import decode
from overspill.view.library import Library

MAX_QUOTES = 100
_MAX_QUOTE_BYTES = 20_000
"""Shown of a quote. All of it is checked."""


class CheckedQuote(Struct, frozen=True):
    quote: Quote
    text: str
    line: int
    is_sound: bool
    is_cut: bool


class Citation(Struct, frozen=True):
    item: ArchivedOutput
    event: OutputExtracted
    quotes: tuple[CheckedQuote, ...]
    answers: tuple[str, ...]
    """How the answers of models begin, as the journal has them."""
    reply: RecordedReply | None
    """The whole answer, where it is on record."""
    cost: float
    problem: str
    """What is wrong with the output itself, checked now: its size, its hash or a quote. Empty if nothing is."""

    @property
    def is_sound(self) -> bool:
        return not self.problem and all(quote.is_sound for quote in self.quotes)


def find_citation(library: Library, session: str, op: str) -> Citation:
    """Raises HandleError if the session has no such extraction, or its output is gone."""
    event, answers, cost = None, list[str](), 0.0
    found = list(library.events(session))
    for each in found:
        if isinstance(each, OutputExtracted) and each.op == op:
            event = each
        elif isinstance(each, ModelCalled) and each.op == op:
            cost += each.cost or 0.0
            if each.preview:
                answers.append(each.preview)
    if event is None:
        raise HandleError("This session has no such extraction.")
    item = library.find(session, event.id)
    reader, problem = _open_source(library, item, event)
    quotes = tuple(_check_quotes(event.quotes[:MAX_QUOTES], reader)) if reader else ()
    problem = problem or library.verify(item).problem
    return Citation(item, event, quotes, tuple(answers), find_answer(found, op), cost, problem)


def find_answer(events: Iterable[Entry], op: str) -> RecordedReply | None:
    """The reply to the retrieval that extracted. None if several asked the same tool about the same output at the same time."""
    waiting: list[OutputExtracted] = []
    for event in events:
        if isinstance(event, OutputExtracted):
            waiting.append(event)
        elif isinstance(event, OutputRetrieved):
            mine = [each for each in waiting if (each.id, each.tool) == (event.id, event.tool)]
            if any(each.op == op for each in mine):
                return event.reply if len(mine) == 1 else None
            waiting = [each for each in waiting if each not in mine]
    return None


def _open_source(library: Library, item: ArchivedOutput, event: OutputExtracted) -> tuple[Reader | None, str]:
    try:
        reader = library.open(item).reader
        return (redecode(reader, event.decoded) if event.decoded else reader), ""
    except OverspillError as problem:
        return None, str(problem)


def _check_quotes(quotes: Iterable[Quote], reader: Reader) -> Iterator[CheckedQuote]:
    view = View(reader)
    for quote in quotes:
        # A damaged journal may hold any place.
        start, end = max(0, quote.start), min(max(0, quote.end), reader.size)
        shown = reader.read(start, min(end, start + _MAX_QUOTE_BYTES))
        is_sound = 0 <= quote.start <= quote.end <= reader.size and is_quoted(quote, reader)
        yield CheckedQuote(quote, decode(shown), view.line_at(start) if shown else 0, is_sound, end - start > len(shown))
