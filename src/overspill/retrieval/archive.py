"""What all sessions have stored, seen from another process: list, open, verify, count, clean."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice

from msgspec import Struct

from overspill import handles
from overspill.errors import AmbiguousName, HandleError, StoreError, UnknownHandle
from overspill.record import events
from overspill.record.bill import BilledCounters
from overspill.record.events import Entry, JobChanged, OutputStored
from overspill.redaction.policy import NO_REDACTORS, Redaction, Redactors
from overspill.retrieval.output import REDACTED, Quotes, StoredOutput, describe_misquotes, read_quotes
from overspill.store.keep import list_shelves
from overspill.store.protocols import Reader, Shelf, ShelfLabel, Store
from overspill.store.readers import read_blocks
from overspill.types import Kept

_DAMAGED = (
    "Session {session} is skipped: its journal is damaged, so there is no record of what it stored. "
    "Its files are still in the folder session-{session}. Remove that folder yourself if you do not need them."
)


class ArchivedOutput(Struct, frozen=True):
    kept: Kept
    label: ShelfLabel


class Check(Struct, frozen=True):
    """Whether a stored output is still what it was."""

    kept: Kept
    problem: str = ""
    redacted: int = 0
    """Quoted passages with secrets in them, which have no hash to check."""

    @property
    def sound(self) -> bool:
        return not self.problem


class ArchivedJob(Struct, frozen=True):
    """The last known state of a background job."""

    session: str
    change: JobChanged
    asked_ms: int


class Archive(Struct, eq=False):
    """Only `remove` changes anything. Skips ended sessions, and calls `warn` for unreadable ones. `redaction` hides secrets."""

    stores: Sequence[Store]
    warn: Callable[[str], None] = lambda _: None
    redaction: Redaction | None = None
    _reported: set[str] = set()

    def items(self) -> list[ArchivedOutput]:
        """Everything that is stored, oldest first."""
        found = {
            event.kept.id: ArchivedOutput(event.kept, label)
            for label, shelf, entries in self._shelves()
            for event in entries
            if isinstance(event, OutputStored) and event.kept.session == label.session and _is_there(shelf, event.kept.id)
        }
        return sorted(found.values(), key=lambda item: item.kept.created_ms)

    def find(self, spelling: str) -> ArchivedOutput:
        name = handles.parse_name(spelling)
        if name is None:
            session, file = handles.parse(spelling)
            found = list(islice(self._find_stored(file, session), 1))
        else:  # short names are unique only among the outputs of one owner, and the archive has those of all owners
            named = (item for item in self._find_stored(handles.ending(name)) if item.kept.name == name)
            found = list({item.kept.id: item for item in named}.values())
        if len(found) > 1:
            raise AmbiguousName(spelling, [item.kept.handle for item in found])
        if not found:
            raise HandleError(f"Nothing is stored under {spelling!r}. `overspill artifacts list` shows what is stored.")
        return found[0]

    def _find_stored(self, ending: str, session: str | None = None) -> Iterator[ArchivedOutput]:
        """The outputs whose ids end with `ending`."""
        for label, shelf, entries in self._shelves(session, about=ending):
            for event in entries if not handles.is_uuid(ending) or _is_there(shelf, ending) else ():
                kept = event.kept if isinstance(event, OutputStored) else None
                if kept and kept.id.endswith(ending) and kept.session == label.session and _is_there(shelf, kept.id):
                    yield ArchivedOutput(kept, label)

    @contextmanager
    def open(self, spelling: str) -> Generator[StoredOutput]:
        kept = self.find(spelling).kept
        with self.open_unnoted(kept) as stored:
            with self._reading(kept.session) as shelf:
                shelf.note_read(kept.id)
            if stored.damage:
                self._report(f"{kept.artifact_id} is damaged on disk: {stored.damage}.")
            yield stored

    def open_unnoted(self, kept: Kept) -> StoredOutput:
        """Open an output without noting that it was read, so that looking at it does not keep it longer. You close it."""
        with self._reading(kept.session) as shelf:
            return StoredOutput(kept, shelf.open(kept.id), redactors=self.find_redactors(kept.tool, kept.server))

    def find_redactors(self, tool: str, server: str) -> Redactors:
        return self.redaction.for_reading(tool, server) if self.redaction else NO_REDACTORS

    def open_beside(self, session: str, id: str) -> Reader:
        """Open something stored next to a session's outputs, such as a recorded reply. You close it."""
        with self._reading(session) as shelf:
            return shelf.open(id)

    def journals(self, session: str | None = None) -> Iterator[tuple[ShelfLabel, Iterator[bytes]]]:
        """Every session, or only one, with the lines of its journal. Use them before you ask for the next session."""
        return ((label, shelf.journal()) for label, shelf, _ in self._shelves(session))

    def verify(self, items: Sequence[ArchivedOutput]) -> Iterator[Check]:
        """Check each output's size and SHA-256, and every passage quoted from it. Leaves out outputs that were just removed."""
        quotes: dict[str, Quotes] = {}
        for item in items:
            try:
                problem = self._problem(item.kept, quotes)
                recorded = quotes.get(item.kept.session, {}).get(item.kept.id, {})
                redacted = sum(quote.sha256 == REDACTED for each in recorded.values() for quote in each)
            except (HandleError, StoreError) as error:
                if self._is_gone(item.kept):
                    continue
                problem, redacted = str(error), 0
            yield Check(item.kept, problem, redacted)

    def counters(self) -> list[tuple[ShelfLabel, BilledCounters]]:
        counted: list[tuple[ShelfLabel, BilledCounters]] = []
        for label, _, entries in self._shelves():
            counters = BilledCounters()
            for event in entries:
                counters.add(event)
            counted.append((label, counters))
        return counted

    def jobs(self) -> list[ArchivedJob]:
        """Background jobs of live sessions, in the order of their calls."""
        lines: dict[str, ArchivedJob] = {}
        for label, _, entries in self._shelves(live_only=True):
            for event in entries:
                if isinstance(event, JobChanged) and handles.is_uuid(event.id):
                    lines[event.id] = ArchivedJob(label.session, event, handles.created_ms(event.id))
        return sorted(lines.values(), key=lambda line: line.asked_ms)

    def remove(self, *, live: bool = False) -> list[str]:
        """Remove closed sessions; with `live`, also the outputs of live ones, which continue. Returns the sessions."""
        removed: list[str] = []
        for store in self.stores:
            for label in list_shelves(store):
                if label.live and not live:
                    continue
                try:
                    with closing(store.read_shelf(label.session)) as shelf:
                        is_damaged = _needs_record(label) and next(events.decode_events(shelf.journal()), None) is None
                    if is_damaged:
                        self._report(_DAMAGED.format(session=label.session))
                        continue
                    store.empty_shelf(label.session) if label.live else store.remove_shelf(label.session)
                except HandleError:
                    continue
                except StoreError as error:
                    self._report(str(error))
                    continue
                removed.append(label.session)
        return removed

    def _problem(self, kept: Kept, quotes: dict[str, Quotes]) -> str:
        """What is wrong with a stored output; empty if nothing is. `quotes` caches the quotes of each session's journal."""
        with self._reading(kept.session) as shelf:
            if kept.session not in quotes:
                quotes[kept.session] = read_quotes(shelf)
            with closing(shelf.open(kept.id)) as reader:
                digest = hashlib.sha256()
                for block in read_blocks(reader):
                    digest.update(block)
                size, misquoted = reader.size, describe_misquotes(quotes[kept.session].get(kept.id, {}), reader)
        if size != kept.size.bytes:
            return f"has {size:,} bytes; {kept.size.bytes:,} were stored"
        if digest.hexdigest() != kept.sha256:
            return "its bytes are not those that were stored: the SHA-256 differs"
        return misquoted

    def _shelves(
        self, session: str | None = None, *, live_only: bool = False, about: str = ""
    ) -> Iterator[tuple[ShelfLabel, Shelf, Iterator[Entry]]]:
        """Every session, or only one or the live ones, open for reading, with its first event and those that contain `about`."""
        for store in self.stores:
            for label in list_shelves(store) if session is None else _find_label(store, session):
                if live_only and not label.live:
                    continue
                try:
                    shelf = store.read_shelf(label.session)
                except HandleError:
                    continue
                except StoreError as error:
                    self._report(f"Session {label.session} is skipped. {error}")
                    continue
                with closing(shelf):
                    entries = self._events(store, label, shelf, about)
                    first = next(entries, None)
                    if first is not None or not _needs_record(label):
                        yield label, shelf, entries if first is None else chain([first], entries)
                    elif not _has_ended(store, label):
                        self._report(_DAMAGED.format(session=label.session))

    def _report(self, text: str) -> None:
        """Pass a warning to `warn`, unless it was given before."""
        if text not in self._reported:
            self._reported.add(text)
            self.warn(text)

    def _events(self, store: Store, label: ShelfLabel, shelf: Shelf, about: str) -> Iterator[Entry]:
        try:
            lines = shelf.journal()
            yield from islice(events.decode_events(lines), 1)
            yield from events.decode_events(lines, about=about)
        except StoreError as error:
            if not _has_ended(store, label):
                self._report(f"Session {label.session} is skipped. {error}")

    def _is_gone(self, kept: Kept) -> bool:
        try:
            with self._reading(kept.session) as shelf:
                return not _is_there(shelf, kept.id)
        except UnknownHandle:
            return True
        except StoreError:
            return False

    @contextmanager
    def _reading(self, session: str) -> Generator[Shelf]:
        for store in self.stores:
            try:
                shelf = store.read_shelf(session)
            except UnknownHandle:
                continue
            with closing(shelf):
                yield shelf
            return
        raise UnknownHandle(f"session-{session}")


def _has_ended(store: Store, label: ShelfLabel) -> bool:
    """Whether the session was removed since it was listed, which explains why it cannot be read."""
    return not _find_label(store, label.session)


def _needs_record(label: ShelfLabel) -> bool:
    """Whether an empty journal means damage: the outputs are kept, but nothing records what they are."""
    return not label.live and label.retention == "keep"


def _find_label(store: Store, session: str) -> list[ShelfLabel]:
    try:
        return [store.label(session)]
    except UnknownHandle:
        return []


def _is_there(shelf: Shelf, id: str) -> bool:
    try:
        shelf.open(id).close()
    except HandleError:
        return False
    except StoreError:
        return True  # the store refuses to open it, and opening or verifying an output reports that
    return True
