"""What the pages show, read through the same archive as the commands. Quotes are checked when a page shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from threading import RLock

from msgspec import Struct

from overspill import handles
from overspill.decoding import redecode
from overspill.errors import HandleError, MalformedHandle, OverspillError, StoreError, UnknownHandle
from overspill.reading.positions import View
from overspill.record.events import Entry, ModelCalled, OutputExtracted, OutputRetrieved, Quote, find_replies
from overspill.retrieval.archive import Archive, ArchivedOutput, Check
from overspill.retrieval.output import REDACTED, StoredOutput, is_quoted
from overspill.store.protocols import ShelfLabel
from overspill.store.recent import Recent
from overspill.text.encoding import decode
from overspill.view.records import SessionRecord, read_events

MAX_OPEN_OUTPUTS = 8
"""How many outputs stay open with their line positions, because readers often come back to the same output."""
MAX_REMEMBERED_OUTPUTS = 200_000
"""The most stored outputs in the sessions whose journals are cached. Other journals are read again."""
MAX_QUOTES = 100
_MAX_QUOTE_BYTES = 20_000
"""The most bytes shown of a quote. The whole quote is checked."""


class Library:
    """Blocks: call it in a thread. Several threads may use it at the same time."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._records: Recent[str, SessionRecord] = Recent(MAX_REMEMBERED_OUTPUTS, _weigh)
        self._open: Recent[str, StoredOutput] = Recent(MAX_OPEN_OUTPUTS, lambda _: 1)
        self._lock = RLock()

    def sessions(self) -> list[SessionRecord]:
        """Live and ended sessions, newest first."""
        with self._lock:
            found = [self._read(label, lines) for label, lines in self._archive.journals()]
        return sorted(found, key=lambda record: record.session, reverse=True)

    def session(self, session: str) -> SessionRecord:
        """Raises UnknownHandle if the session does not exist."""
        if not handles.is_uuid(session):
            raise MalformedHandle(session)
        with self._lock:
            for label, lines in self._archive.journals(session):
                return self._read(label, lines)
        raise UnknownHandle(f"session-{session}")

    def events(self, session: str) -> Iterator[Entry]:
        for _, lines in self._archive.journals(session):
            with suppress(HandleError, StoreError):
                yield from read_events(lines)

    def find(self, session: str, file: str) -> ArchivedOutput:
        record = self.session(session)
        kept = record.kept.get(file)
        if kept is None or kept.session != session:
            raise UnknownHandle(handles.handle(session, file))
        return ArchivedOutput(kept, record.label)

    def open(self, item: ArchivedOutput) -> StoredOutput:
        """Open an output, which requests share: do not close it. It is closed after the last read."""
        kept = item.kept
        with self._lock:
            stored = self._open.get(kept.handle)
            # If an output has changed, cached facts about it are wrong, such as where its lines are.
            if stored is None or stored.reader.is_removed or stored.reader.size != stored.view.bytes:
                stored = self._open[kept.handle] = self._archive.open_unnoted(kept)
        return stored

    def read_reply(self, session: str, id: str, start: int) -> bytes:
        """Read what a model was shown. Raises HandleError if the session has not recorded it, or it is gone."""
        for event in self.events(self.session(session).session):
            for reply in find_replies(event):
                if (reply.id, reply.start) == (id, start):
                    with closing(self._archive.open_beside(session, id)) as reader:
                        return reader.read(start, start + reply.size)
        raise UnknownHandle(handles.handle(session, id))

    def verify(self, item: ArchivedOutput) -> Check:
        """Check an output's size, its SHA-256 and every recorded quote, without using cached results."""
        return next(self._archive.verify([item]), Check(item.kept, "it was removed"))

    def _read(self, label: ShelfLabel, lines: Iterator[bytes]) -> SessionRecord:
        record = self._records.get(label.session) or SessionRecord(label)
        record.label = label
        with suppress(HandleError, StoreError):  # the session ended while we were reading, but what we have read is still true
            record.read(lines)
        self._records[label.session] = record
        return record


def _weigh(record: SessionRecord) -> int:
    return min(1 + len(record.kept), MAX_REMEMBERED_OUTPUTS)


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
    """The beginnings of the models' answers, from the journal."""
    retrieval: OutputRetrieved | None
    """The retrieval with the question and the whole answer, if they are on record."""
    cost: float
    problem: str
    """What is wrong with the output itself, checked now: its size, its hash or a quote. Empty if nothing is."""

    @property
    def is_sound(self) -> bool:
        return not self.problem and all(quote.is_sound for quote in self.quotes)


def find_citation(library: Library, session: str, op: str) -> Citation:
    """Find an extraction and check its quotes. Raises HandleError if it does not exist, or its output is gone."""
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
    item, quotes, problem = library.find(session, event.id), list[CheckedQuote](), ""
    try:
        stored = library.open(item)
        reader, hiding = stored.as_stored().reader, stored.decoded().positions
        reader = redecode(reader, event.decoded) if event.decoded else reader
    except OverspillError as error:
        problem = str(error)
    else:
        view = View(reader)
        for quote in event.quotes[:MAX_QUOTES]:
            # A damaged journal may contain any positions.
            start, end = max(0, quote.start), min(max(0, quote.end), reader.size)
            shown = reader.read(start, min(end, start + _MAX_QUOTE_BYTES))
            is_sound = 0 <= quote.start <= quote.end <= reader.size and is_quoted(quote, reader)
            line = view.line_at(start) if shown else 0
            # It may have been quoted before secrets were hidden.
            is_hidden = hiding.hides(hiding.from_stored(start), hiding.from_stored(end, is_end=True))
            text = "(with secrets)" if quote.sha256 == REDACTED or is_hidden else decode(shown)
            quotes.append(CheckedQuote(quote, text, line, is_sound, end - start > len(shown)))
    problem = problem or library.verify(item).problem
    return Citation(item, event, tuple(quotes), tuple(answers), find_answer(found, op), cost, problem)


def find_answer(events: Iterable[Entry], op: str) -> OutputRetrieved | None:
    """Find the retrieval of an extraction. None if several asked the same tool about the same output at the same time."""
    waiting: list[OutputExtracted] = []
    for event in events:
        if isinstance(event, OutputExtracted):
            waiting.append(event)
        elif isinstance(event, OutputRetrieved):
            mine = [each for each in waiting if (each.id, each.tool) == (event.id, event.tool)]
            if any(each.op == op for each in mine):
                return event if len(mine) == 1 else None
            waiting = [each for each in waiting if each not in mine]
    return None
