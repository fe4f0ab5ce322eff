"""What all sessions of a machine have stored, seen from another process: list, open, verify, count, clean."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from overspill import handles
from overspill.errors import HandleError, StoreError, UnknownHandle
from overspill.record import events
from overspill.record.counters import Counters
from overspill.record.events import Entry, JobChanged, OutputExtracted, OutputStored
from overspill.retrieval.outputs import StoredOutput
from overspill.store.protocols import Reader, Shelf, ShelfLabel, Store
from overspill.types import Kept

_BLOCK = 1 << 20
_DAMAGED = (
    "Session {session} is passed over: its journal is damaged, so nobody can say what it stored. "
    "Its files are still there, in the folder session-{session}; remove that yourself if you do not need them."
)


class ArchivedOutput(Struct, frozen=True):
    """A stored output and the session it belongs to."""

    kept: Kept
    label: ShelfLabel


class Check(Struct, frozen=True):
    """Whether a stored output is still what it was."""

    kept: Kept
    problem: str = ""

    @property
    def sound(self) -> bool:
        return not self.problem


class ArchivedJob(Struct, frozen=True):
    """The last that is known of a background job."""

    session: str
    change: JobChanged
    asked_ms: int


class Archive:
    """Reads only, but for `remove`. Sessions that end while it looks are passed over; `warn` hears of what it cannot read."""

    def __init__(self, stores: Sequence[Store], warn: Callable[[str], None] = lambda _: None) -> None:
        self._stores = stores
        self._warn = warn
        self._told: set[str] = set()

    def items(self) -> list[ArchivedOutput]:
        """Everything that is stored, oldest first."""
        found = {
            event.kept.id: ArchivedOutput(event.kept, label)
            for label, shelf in self._shelves()
            for event in self._events(label, shelf)
            if isinstance(event, OutputStored) and event.kept.session == label.session and _is_there(shelf, event.kept.id)
        }
        return sorted(found.values(), key=lambda item: item.kept.created_ms)

    def find(self, spelling: str) -> ArchivedOutput:
        session, file = handles.parse(spelling)
        for item in self.items():
            if item.kept.id == file and session in (None, item.kept.session):
                return item
        raise HandleError(f"Nothing is stored under {spelling!r}. `overspill artifacts list` shows what is stored.")

    @contextmanager
    def open(self, spelling: str) -> Generator[StoredOutput]:
        kept = self.find(spelling).kept
        with self._reading(kept.session) as shelf, StoredOutput(kept, shelf.open(kept.id)) as stored:
            yield stored

    def verify(self, items: Sequence[ArchivedOutput]) -> Iterator[Check]:
        """Size and SHA-256 of each, taken again, and every passage that an extraction quoted from it."""
        for item in items:
            try:
                yield Check(item.kept, self._problem(item.kept))
            except (HandleError, StoreError) as error:
                yield Check(item.kept, str(error))

    def counters(self) -> list[tuple[ShelfLabel, Counters]]:
        counted: list[tuple[ShelfLabel, Counters]] = []
        for label, shelf in self._shelves():
            counters = Counters()
            for event in self._events(label, shelf):
                counters.add(event)
            counted.append((label, counters))
        return counted

    def jobs(self) -> list[ArchivedJob]:
        """Background jobs of live sessions, in the order they were asked for."""
        lines: dict[str, ArchivedJob] = {}
        for label, shelf in self._shelves():
            for event in self._events(label, shelf) if label.live else ():
                if isinstance(event, JobChanged) and handles.is_uuid(event.id):
                    lines[event.id] = ArchivedJob(label.session, event, handles.created_ms(event.id))
        return sorted(lines.values(), key=lambda line: line.asked_ms)

    def remove(self, *, live: bool = False) -> list[str]:
        """Remove what closed sessions left; with `live`, also the outputs of sessions that go on. Returns the sessions."""
        removed: list[str] = []
        for store in self._stores:
            for label in store.shelves():
                if label.live and not live:
                    continue
                try:
                    if self._is_damaged(store, label):
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

    def _problem(self, kept: Kept) -> str:
        with self._reading(kept.session) as shelf:
            reader = shelf.open(kept.id)
            try:
                digest = hashlib.sha256()
                for start in range(0, reader.size, _BLOCK):
                    digest.update(reader.read(start, start + _BLOCK))
                size, misquoted = reader.size, _count_misquotes(shelf, kept.id, reader)
            finally:
                reader.close()
        if size != kept.size.bytes:
            return f"has {size:,} bytes; {kept.size.bytes:,} were stored"
        if digest.hexdigest() != kept.sha256:
            return "its bytes are not those that were stored: the SHA-256 differs"
        return f"{misquoted} quoted passages are not in it" if misquoted else ""

    def _shelves(self) -> Iterator[tuple[ShelfLabel, Shelf]]:
        for store in self._stores:
            for label in store.shelves():
                try:
                    shelf = store.read_shelf(label.session)
                except HandleError:
                    continue
                except StoreError as error:
                    self._report(f"Session {label.session} is passed over. {error}")
                    continue
                try:
                    if _unreadable(label, shelf):
                        self._report(_DAMAGED.format(session=label.session))
                    else:
                        yield label, shelf
                finally:
                    shelf.close()

    def _report(self, text: str) -> None:
        """Once, however often it is met."""
        if text not in self._told:
            self._told.add(text)
            self._warn(text)

    def _is_damaged(self, store: Store, label: ShelfLabel) -> bool:
        shelf = store.read_shelf(label.session)
        try:
            return _unreadable(label, shelf)
        finally:
            shelf.close()

    def _events(self, label: ShelfLabel, shelf: Shelf) -> Iterator[Entry]:
        try:
            yield from events.decode_events(shelf.journal())
        except StoreError as error:
            self._report(f"Session {label.session} is passed over. {error}")

    @contextmanager
    def _reading(self, session: str) -> Generator[Shelf]:
        for store in self._stores:
            try:
                shelf = store.read_shelf(session)
            except UnknownHandle:
                continue
            try:
                yield shelf
            finally:
                shelf.close()
            return
        raise UnknownHandle(f"session-{session}")


def _unreadable(label: ShelfLabel, shelf: Shelf) -> bool:
    """Whether it was kept and nothing in its journal can be read: what it stored is there, but nobody can say what it is."""
    return not label.live and label.retention == "keep" and next(events.decode_events(shelf.journal()), None) is None


def _count_misquotes(shelf: Shelf, id: str, reader: Reader) -> int:
    """Recorded quotes of it that its bytes do not bear out."""
    return sum(
        hashlib.sha256(reader.read(quote.start, quote.end)).hexdigest() != quote.sha256
        for event in events.decode_events(shelf.journal())
        if isinstance(event, OutputExtracted) and event.id == id
        for quote in event.quotes
    )


def _is_there(shelf: Shelf, id: str) -> bool:
    try:
        shelf.open(id).close()
    except HandleError:
        return False
    except StoreError:
        return True  # refused, as whoever opens or verifies it shall hear
    return True
