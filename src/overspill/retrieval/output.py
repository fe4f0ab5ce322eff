"""A stored output, read exactly and without a model, and the passages that extractions quoted from it."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TypeAlias

from overspill import reading
from overspill.decoding import redecode
from overspill.errors import OverspillError, StoreError
from overspill.reading.positions import View
from overspill.reading.query import QueryAnswer, query
from overspill.record import events
from overspill.record.events import OutputExtracted, Quote
from overspill.redaction.policy import NO_REDACTORS, Redactors
from overspill.redaction.redactor import Redactor
from overspill.retrieval.views import TextView, TextViews, describe_gaps
from overspill.sql.answers import SqlAnswer, SqlRow, query_text, read_row
from overspill.store.protocols import Reader, Shelf
from overspill.text import encoding
from overspill.text.humanize import one_line
from overspill.types import Kept
from overspill.wording.presets import DOCUMENT, Wording

_EVERYTHING = reading.Bound(1 << 62)
REDACTED = "redacted"
"""Replaces the hash of a quote that contains secrets."""


class StoredOutput:
    """One stored output, to read without a model. Bytes and characters count from 0, lines from 1.

    The methods that read raise StoreError if another program has shortened or extended its file.
    """

    def __init__(
        self,
        kept: Kept,
        reader: Reader,
        checkpoints: Sequence[tuple[int, int, int]] = (),
        views: TextViews | None = None,
        words: Wording = DOCUMENT,
        redactors: Redactors = NO_REDACTORS,
    ) -> None:
        self.kept = kept
        self.words = words
        self.shown_id = words.id(kept)
        self._stored = reader
        self._stored_view = View(reader, checkpoints=checkpoints)
        self._redactors = redactors
        self._views = views or TextViews()

    @cached_property
    def shown(self) -> TextView:
        """The stored bytes, with marks in place of secrets that are hidden from models. Blocks on first use."""
        text = TextView(self._stored, self.kept.size, self._stored_view, key=self.kept.sha256)
        return self._views.redact(self.kept, text, self._redactors.shown)

    @property
    def reader(self) -> Reader:
        return self.shown.reader

    @property
    def view(self) -> View:
        return self.shown.positions

    @property
    def is_removed(self) -> bool:
        return self._stored.is_removed

    @property
    def damage(self) -> str:
        """What is wrong with its size, or an empty string. `overspill verify` also checks its content."""
        size, stored = self._stored.size, self.kept.size.bytes
        return "" if size == stored else f"it has {size:,} bytes; {stored:,} were stored"

    def check(self) -> None:
        if damage := self.damage:
            again = f"Call {one_line(self.kept.tool)} again." if self.kept.tool else "Call the tool again."
            raise StoreError(f"The output {self.kept.artifact_id!r} is damaged on disk: {damage}. {again}")

    def bytes(self, start: int = 0, end: int | None = None) -> bytes:
        self.check()
        return self.reader.read(start, self.reader.size if end is None else end)

    def text(self) -> str:
        return encoding.decode(self.bytes())

    def decoded(self) -> TextView:
        """The output's text: the stored bytes if they are UTF-8, otherwise text decompressed, converted, or taken from the pages
        of a PDF. Raises NotText if it has no text."""
        self.check()
        return self._views.redact(self.kept, self._decode(), self._redactors.shown)

    def as_stored(self) -> StoredOutput:
        """The output without marks, because a tool, unlike a model, may see secrets."""
        return self if self._redactors is NO_REDACTORS else StoredOutput(self.kept, self._stored, words=self.words)

    def sent(self) -> TextView:
        """The text for a model that extracts, with marks in place of secrets that are hidden from it."""
        self.check()
        return self._views.redact(self.kept, self._decode(), self._redactors.sent)

    def _decode(self) -> TextView:
        return self._views.get(self.kept, self._stored, self._stored_view)

    def lines(self, first: int = 1, last: int | None = None) -> str:
        """Lines `first` to `last`, both included."""
        self.check()
        return reading.lines(self.reader, self.view, first, last, _EVERYTHING).text

    def grep(self, pattern: str, *, context: int = 0, ignore_case: bool = False, literal: bool = False) -> reading.Grep:
        self.check()
        return reading.grep(
            self.reader, self.view, pattern, _EVERYTHING, context=context, ignore_case=ignore_case, literal=literal
        )

    def query(self, expression: str) -> QueryAnswer:
        """The value at a JSON pointer (`/items/0/name`), or the result of a JMESPath expression."""
        self.check()
        return query(self.reader, expression, _EVERYTHING)

    def sql(self, statement: str, seconds: float = 10.0) -> SqlAnswer:
        """Query the output's tables, which are called `output`. `session.sql` queries several outputs, and keeps them loaded."""
        text = self.decoded()
        return query_text(statement, text.reader, seconds, describe_gaps(self.kept, text))

    def row(self, row: int | str) -> SqlRow:
        """The original text of a row that `sql` selected, and its place in the output. `row` is its `_row`."""
        return read_row(self.decoded().reader, row)

    def close(self) -> None:
        self._stored.close()

    def __enter__(self) -> StoredOutput:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class RunningReader:
    """Reads what a growing output had when the reader was made, up to the last whole character. If secrets are hidden, it ends
    before any that may have arrived only in part."""

    def __init__(self, reader: Reader, redactor: Redactor | None) -> None:
        self._reader = reader
        size = reader.size if redactor is None else redactor.find_settled_end(reader.buffer())
        tail = reader.read(size - 4, size)
        self.size = size - len(tail) + encoding.complete_length(tail)

    def read(self, start: int, end: int) -> bytes:
        return self._reader.read(start, min(end, self.size))

    def buffer(self) -> memoryview:
        return self._reader.buffer()[: self.size]

    @property
    def is_removed(self) -> bool:
        return self._reader.is_removed

    def close(self) -> None:
        self._reader.close()


Formats: TypeAlias = tuple[str, ...]
Quotes: TypeAlias = Mapping[str, Mapping[Formats, Sequence[Quote]]]
"""The passages that extractions quoted, by output and by how its text was decoded."""


def read_quotes(shelf: Shelf) -> Quotes:
    quotes: defaultdict[str, defaultdict[Formats, list[Quote]]] = defaultdict(lambda: defaultdict(list))
    for event in events.decode_events(shelf.journal()):
        if isinstance(event, OutputExtracted):
            quotes[event.id][event.decoded].extend(event.quotes)
    return quotes


def describe_misquotes(quotes: Mapping[Formats, Sequence[Quote]], reader: Reader) -> str:
    """Which recorded quotes are no longer in the stored bytes or the text decoded from them; empty if none are missing."""
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


def quote_spans(spans: Iterable[tuple[int, int]], text: TextView) -> tuple[Quote, ...]:
    """Quotes of `spans`, located in the stored bytes. A passage with a hidden secret gets no hash, which could give it away."""
    view, quotes = text.positions, list[Quote]()
    for start, end in spans:
        digest = REDACTED if view.hides(start, end) else hashlib.sha256(text.reader.read(start, end)).hexdigest()
        quotes.append(Quote(view.to_stored(start), view.to_stored(end, is_end=True), digest))
    return tuple(quotes)


def is_quoted(quote: Quote, reader: Reader) -> bool:
    """Whether the bytes at its place are still those that were quoted, if that can be checked."""
    return quote.sha256 == REDACTED or hashlib.sha256(reader.read(quote.start, quote.end)).hexdigest() == quote.sha256
