"""A store that may not work when sessions open, for hosts that must not fail with it: they begin without it, and use it as soon
as it works."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from functools import partial
from threading import Lock

from overspill import handles
from overspill.errors import StoreAway, StoreError, StoreFull, UnknownHandle
from overspill.store import rules
from overspill.store.files.journal import Opening
from overspill.store.protocols import KeepLimits, Reader, Retention, Shelf, Store, Writer

_REST_AFTER_FAILURE = 20  # times as long as the failed attempt took
_MAX_WAITING_BYTES = 1 << 20  # of a journal that cannot be written yet
_NOT_WORKING = "the store does not work at the moment, and `overspill doctor` tells your user why."


class RecoveringStore:
    """`tell` gets one line when the store fails, and one when it works again."""

    def __init__(self, store: Store, tell: Callable[[str], None]) -> None:
        self.url = store.url
        self.read_shelf = store.read_shelf
        self.label = store.label
        self.shelves = store.shelves
        self.find_recorded = store.find_recorded
        self.expire = store.expire
        self.free = store.free
        self.close = store.close
        self._store = store
        self._tell = tell
        self._failure: StoreError | None = None
        self._no_attempt_before = 0.0
        self._waiting: set[str] = set()
        self._mutex = Lock()

    def check(self) -> None:
        """Try it, so that a failure is told before it matters."""
        with suppress(StoreError):
            self.open_now(handles.new()).close()

    def answers(self) -> bool:
        """Ask it for something that it does not have."""
        try:
            self._store.label(handles.new())
        except UnknownHandle:
            return True
        except StoreError:
            return False
        return True

    def open_shelf(
        self, session: str, *, name: str = "", retention: Retention = "session", limits: KeepLimits | None = None
    ) -> Shelf:
        """Does not fail, except for a name that an existing session may have: what that has stored cannot be done without."""
        open_now = partial(self.open_now, session, name=name, retention=retention, limits=limits)
        try:
            return open_now()
        except StoreError:
            if name and not rules.is_unique(name, session):
                raise
            self._waiting.add(session)
            return RecoveringShelf(Opening.now(session, name, retention), open_now)

    def open_now(
        self, session: str, *, name: str = "", retention: Retention = "session", limits: KeepLimits | None = None
    ) -> Shelf:
        with self._mutex:
            if self._failure and time.monotonic() < self._no_attempt_before:
                raise self._failure
        started = time.monotonic()
        try:
            shelf = self._store.open_shelf(session, name=name, retention=retention, limits=limits)
        except StoreError as error:
            self._note(error, time.monotonic() - started)
            raise
        self._waiting.discard(session)
        self._note(None)
        return shelf

    def remove_shelf(self, session: str) -> None:
        if session in self._waiting:
            self._waiting.discard(session)
        else:
            self._store.remove_shelf(session)

    def empty_shelf(self, session: str) -> int:
        return 0 if session in self._waiting else self._store.empty_shelf(session)

    def _note(self, failure: StoreError | None, seconds: float = 0) -> None:
        """What came of an attempt, and how long it took."""
        with self._mutex:
            is_news = (failure is None) != (self._failure is None)
            self._failure = failure
            self._no_attempt_before = time.monotonic() + seconds * _REST_AFTER_FAILURE
        if is_news and failure:
            self._tell(f"Nothing can be stored, so large results are cut. {failure} Each large result tries the store again.")
        elif is_news:
            self._tell("The store works again, and large results are stored.")


class RecoveringShelf:
    """Has nothing until the store works. Every output that is to be stored is an attempt."""

    def __init__(self, opening: Opening, open_now: Callable[[], Shelf]) -> None:
        self.session = opening.session
        self._opening = opening
        self._open_now = open_now
        self._shelf: Shelf | None = None
        self._lines = bytearray()
        self._is_closed = False
        self._attempting = Lock()  # held while the store is tried, which may take a while
        self._mutex = Lock()

    def create(self, id: str) -> Writer:
        rules.check_id(id)
        with self._attempting:
            if self._shelf is None:
                self._recover()
        assert self._shelf is not None
        return self._shelf.create(id)

    def open(self, id: str) -> Reader:
        rules.check_id(id)
        if self._shelf is None:
            raise UnknownHandle(handles.handle(self.session, id))
        return self._shelf.open(id)

    def note_read(self, id: str) -> None:
        if self._shelf is not None:
            self._shelf.note_read(id)

    def append_journal(self, lines: bytes) -> None:
        rules.check_lines(lines)
        with self._mutex:
            if self._is_closed:
                raise rules.closed_error("shelf")
            if self._shelf is not None:
                self._shelf.append_journal(lines)
            elif len(self._lines) + len(lines) > _MAX_WAITING_BYTES:
                raise StoreFull(f"The journal of session {self.session} waits in memory and is full: {_NOT_WORKING}")
            else:
                self._lines += lines

    def journal(self) -> Iterator[bytes]:
        with self._mutex:
            if self._shelf is not None:
                return self._shelf.journal()
            return iter([self._opening.line, *bytes(self._lines).splitlines(keepends=True)])

    def read_on(self, position: int) -> tuple[list[bytes], int]:
        return ([], position) if self._shelf is None else self._shelf.read_on(position)

    def remove_unrecorded(self, recorded: Container[str]) -> int:
        return 0 if self._shelf is None else self._shelf.remove_unrecorded(recorded)

    def close(self) -> None:
        with self._attempting, self._mutex:
            self._is_closed = True
            if self._shelf is not None:
                self._shelf.close()

    def _recover(self) -> None:
        """Called while attempting."""
        if self._is_closed:
            raise rules.closed_error("shelf")
        try:
            shelf = self._open_now()
        except StoreError as error:
            raise StoreAway(_NOT_WORKING) from error
        with self._mutex:
            try:
                if self._lines:
                    shelf.append_journal(bytes(self._lines))
            except StoreError as error:
                shelf.close()
                raise StoreAway(_NOT_WORKING) from error
            self._lines.clear()
            self._shelf = shelf
