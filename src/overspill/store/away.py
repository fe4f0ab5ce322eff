"""A store that cannot be reached. Outputs and journal lines wait for it in memory, and a host's sessions begin without it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from threading import Event, Lock, Thread

from overspill import handles
from overspill.errors import StoreAway, StoreError, StoreFull, UnknownHandle
from overspill.store import rules
from overspill.store.memory import MemoryStore
from overspill.store.open import is_on_server
from overspill.store.protocols import KeepLimits, Reader, Retention, Shelf, Store, Writer
from overspill.store.quota import Quota
from overspill.store.readers import BytesReader

MAX_WAITING_BYTES = 64 << 20
"""The most that one session holds. An output that would exceed it is handled as on a full disk."""
_SECONDS_BETWEEN_ATTEMPTS = 1.0
_REST_AFTER_FAILURE = 20  # the pause before the next attempt, in multiples of how long the failed one took
_NO_ROOM = f"the store does not answer, and {MAX_WAITING_BYTES:,} bytes, which is the most, wait in memory for it."
_NOT_WORKING = "the store does not work at the moment, and `overspill doctor` shows your user why."
logger = logging.getLogger("overspill")


class WaitingStore:
    """For hosts that must not fail with their store: sessions begin without it, and use it once it works. `tell` receives one
    line when the store fails, and another when it works again."""

    def __init__(self, store: Store, tell: Callable[[str], None]) -> None:
        self.url = store.url
        self.read_shelf, self.label, self.shelves = store.read_shelf, store.label, store.shelves
        self.find_recorded, self.expire = store.find_recorded, store.expire
        self.free, self.close = store.free, store.close
        self._store, self._tell = store, tell
        self._failure: StoreError | None = None
        self._no_attempt_before = 0.0
        self._unopened: set[str] = set()
        self._mutex = Lock()

    def check(self) -> None:
        """Open and close a session in the store, so that a failure is reported before it matters."""
        with suppress(StoreError):
            self._open_now(handles.new(), "", "session", None).close()

    def answers(self) -> bool:
        """Whether the store answers a request for a session that does not exist."""
        with suppress(StoreError):
            with suppress(UnknownHandle):
                self._store.label(handles.new())
            return True
        return False

    def open_shelf(
        self, session: str, *, name: str = "", retention: Retention = "session", limits: KeepLimits | None = None
    ) -> Shelf:
        """Open a shelf. Fails only for a name that an existing session may have, because its stored outputs are needed."""
        open_now = partial(self._open_now, session, name, retention, limits)
        try:
            return open_now()
        except StoreError:
            if name and not rules.is_unique(name, session):
                raise
            self._unopened.add(session)
            stand_in = MemoryStore().open_shelf(session, name=name, retention=retention)
            return WaitingShelf(stand_in, open_now, holds_outputs=is_on_server(self.url))

    def remove_shelf(self, session: str) -> None:
        if session not in self._unopened:
            self._store.remove_shelf(session)
        self._unopened.discard(session)

    def empty_shelf(self, session: str) -> int:
        return 0 if session in self._unopened else self._store.empty_shelf(session)

    def _open_now(self, session: str, name: str, retention: Retention, limits: KeepLimits | None) -> Shelf:
        started, failure = time.monotonic(), self._failure
        if failure and started < self._no_attempt_before:
            raise failure
        try:
            shelf = self._store.open_shelf(session, name=name, retention=retention, limits=limits)
        except StoreError as error:
            now = time.monotonic()
            self._no_attempt_before = now + (now - started) * _REST_AFTER_FAILURE
            news = f"Nothing can be stored, so large results are cut. {error} Each large result tries the store again."
            self._note_attempt(error, news)
            raise
        self._unopened.discard(session)
        self._note_attempt(None, "The store works again, and large results are stored.")
        return shelf

    def _note_attempt(self, failure: StoreError | None, news: str) -> None:
        with self._mutex:
            is_news = (failure is None) != (self._failure is None)
            self._failure = failure
        if is_news:
            self._tell(news)


class WaitingShelf:
    """A shelf whose outputs wait if its store does not answer. Its journal waits too, and never names an unstored output.

    An output that the store refuses for another reason delays no other. It can be read from memory while the session is open.
    With `open_now`, `shelf` is in memory and replaces one that could not be opened. Storing an output tries to open it again."""

    def __init__(self, shelf: Shelf, open_now: Callable[[], Shelf] | None = None, *, holds_outputs: bool = True) -> None:
        self.session = shelf.session
        self.room = Quota(MAX_WAITING_BYTES)
        self._shelf = shelf
        self._open_now = open_now
        self._holds_outputs = holds_outputs
        self._waiting: dict[str, WaitingWriter] = {}
        self._closed = Event()
        self._is_trying, self._mutex = False, Lock()
        self._opening = Lock()  # held while an attempt to open the store is under way, which may take a while
        self._journaling = Lock()
        self._settling = Lock()

    def create(self, id: str) -> Writer:
        rules.check_id(id)
        return WaitingWriter(self, id) if self._holds_outputs else self.create_now(id)

    def create_now(self, id: str) -> Writer:
        with self._opening:
            if self._open_now is not None:
                self._replace_stand_in(self._open_now)
        return self._shelf.create(id)

    def open(self, id: str) -> Reader:
        writer = self._waiting.get(id)
        held = None if writer is None else writer.read_held()
        return self._shelf.open(id) if held is None else BytesReader(held)

    def note_read(self, id: str) -> None:
        self._shelf.note_read(id)

    def last_used(self, id: str) -> float:
        return self._shelf.last_used(id)

    def append_journal(self, lines: bytes) -> None:
        if self._is_delayed():
            raise StoreError("The store does not answer, and outputs wait to be stored. Nothing is recorded before they are.")
        with self._journaling:
            granted = len(lines) if self._open_now is None else self.room.take(self.session, "", len(lines))
            if granted < len(lines):
                self.room.give_back(self.session, "", granted)
                raise StoreFull(f"The journal of session {self.session} waits in memory and is full: {_NOT_WORKING}")
            self._shelf.append_journal(lines)

    def journal(self) -> Iterator[bytes]:
        return self._shelf.journal()

    def read_on(self, position: int) -> tuple[list[bytes], int]:
        return self._shelf.read_on(position) if self._open_now is None else ([], position)

    def remove_unrecorded(self, recorded: Collection[str]) -> int:
        return self._shelf.remove_unrecorded(recorded)

    def settle(self) -> None:
        """Store the waiting outputs, as long as the store answers. Blocks."""
        with self._settling, suppress(StoreAway):
            for id, writer in list(self._waiting.items()):
                if writer.settle():
                    self._waiting.pop(id, None)

    def close(self) -> None:
        self.settle()
        self._closed.set()
        if self._waiting:
            reason = next((each.refusal for each in self._waiting.values() if each.refusal), "the store does not answer.")
            logger.error("%d outputs of session %s are lost: %s", len(self._waiting), self.session, reason)
        with self._opening:
            self._shelf.close()

    def wait_for(self, id: str, writer: WaitingWriter) -> None:
        self._waiting[id] = writer  # before looking for the thread, which ends only if this is empty
        with self._mutex:
            is_tried, self._is_trying = self._is_trying, True
        if not is_tried:
            Thread(target=self._settle_later, name="overspill-waiting", daemon=True).start()

    def _settle_later(self) -> None:
        is_trying = True
        while is_trying and not self._closed.wait(_SECONDS_BETWEEN_ATTEMPTS):
            self.settle()
            with self._mutex:
                is_trying = self._is_trying = self._is_delayed()

    def _is_delayed(self) -> bool:
        return any(not writer.refusal for writer in list(self._waiting.values()))

    def _replace_stand_in(self, open_now: Callable[[], Shelf]) -> None:
        """Open the store's shelf and copy the waiting journal into it. Call it with `_opening` held."""
        if self._closed.is_set():
            raise rules.closed_error("shelf")
        try:
            with ExitStack() as undo:
                shelf = undo.enter_context(closing(open_now()))
                with self._journaling:
                    _, *lines = self._shelf.journal()  # the store itself has written the first line
                    if lines:
                        shelf.append_journal(b"".join(lines))
                    self._shelf, self._open_now = shelf, None
                undo.pop_all()
        except StoreError as error:
            raise StoreAway(_NOT_WORKING) from error
        self.room.release(self.session, "")


class WaitingWriter:
    """`is_waiting`: whether it is committed in memory but not in the store. `refusal`: why the store may never accept it."""

    def __init__(self, shelf: WaitingShelf, id: str) -> None:
        self.is_waiting, self.refusal = False, ""
        self._shelf, self._id = shelf, id
        self._writer: Writer | None = None
        self._held = bytearray()
        self._tried_bytes = 0
        """How much of it the store may have, if only its answer was lost. That part must be sent again exactly as before."""
        self._mutex = Lock()

    @property
    def size(self) -> int:
        return (0 if self._writer is None else self._writer.size) + len(self._held)

    def append(self, data: bytes | memoryview) -> None:
        view = rules.bytes_of(data)
        with self._mutex:
            if not self._held:  # later bytes wait behind earlier ones
                before = self.size
                with suppress(StoreAway):
                    self._ensure_writer().append(view)
                    return
                view = view[self.size - before :]
                self._tried_bytes = len(view)
            granted = self._shelf.room.take(self._shelf.session, self._id, len(view))
            self._held += view[:granted]
            if granted < len(view):
                raise StoreAway(_NO_ROOM)

    def commit(self) -> None:
        with self._mutex:
            if not self._held:
                with suppress(StoreAway):
                    self._ensure_writer().commit()
                    return
            self.is_waiting = True
            self._shelf.wait_for(self._id, self)

    def discard(self) -> None:
        with self._mutex:
            if self.is_waiting:  # a committed output stays, in memory or in the store
                return
            self._shelf.room.release(self._shelf.session, self._id)
            self._held.clear()
            if self._writer is not None:
                self._writer.discard()

    def settle(self) -> bool:
        """Store and commit the output. Returns whether that worked. Raises StoreAway while the store does not answer."""
        with self._mutex:
            try:
                writer = self._ensure_writer()
                while self._held:
                    self._store_held(writer)
                writer.commit()
                self.is_waiting = False
            except StoreAway:
                raise
            except StoreError as error:
                if not self.refusal:
                    handle = handles.handle(self._shelf.session, self._id)
                    logger.error("%s is not stored, and can be read only until its session closes: %s", handle, error)
                self.refusal = str(error) or type(error).__name__
            return not self.is_waiting

    def _store_held(self, writer: Writer) -> None:
        before = writer.size
        try:
            writer.append(bytes(self._held[: self._tried_bytes or None]))
        finally:
            stored = writer.size - before
            del self._held[:stored]
            self._tried_bytes = max(0, self._tried_bytes - stored)
            self._shelf.room.give_back(self._shelf.session, self._id, stored)

    def read_held(self) -> bytes | None:
        """The whole output if all of it is in memory, otherwise None."""
        with self._mutex:
            return bytes(self._held) if self.is_waiting and self.size == len(self._held) else None

    def _ensure_writer(self) -> Writer:
        if self._writer is None:
            self._writer = self._shelf.create_now(self._id)
        return self._writer
