"""Outputs that could not be stored because the store's server is away: held in memory, and stored when it answers again."""

from __future__ import annotations

import logging
from contextlib import suppress
from threading import Event, Lock, Thread

from overspill import handles
from overspill.errors import StoreAway, StoreError
from overspill.store import rules
from overspill.store.protocols import Reader, Shelf, Writer
from overspill.store.readers import BytesReader

MAX_WAITING_BYTES = 64 << 20
"""Of one session. An output that would exceed it is answered as on a full disk."""
_SECONDS_BETWEEN_ATTEMPTS = 1.0
_SERVERS = ("postgresql:", "postgres:", "s3:", "gs:", "az:")

_NO_ROOM = f"the store does not answer, and {MAX_WAITING_BYTES:,} bytes, which is the most, wait in memory for it."

logger = logging.getLogger("overspill")


def is_on_server(url: str) -> bool:
    """Whether the store can be away and come back."""
    return url.startswith(_SERVERS)


class WaitingShelf:
    """A shelf whose outputs wait if its store does not answer. Its journal waits too: it names nothing that is yet to be stored.

    An output that the store refuses for another reason delays nothing. It can be read here as long as the session is open."""

    def __init__(self, shelf: Shelf) -> None:
        self.session = shelf.session
        self.create_now = shelf.create
        self.note_read = shelf.note_read
        self.journal = shelf.journal
        self.read_on = shelf.read_on
        self.remove_unrecorded = shelf.remove_unrecorded
        self._shelf = shelf
        self._held_bytes = 0
        self._waiting: dict[str, WaitingWriter] = {}
        self._closed = Event()
        self._is_trying = False
        self._mutex = Lock()
        self._settling = Lock()

    def create(self, id: str) -> WaitingWriter:
        return WaitingWriter(self, id)

    def open(self, id: str) -> Reader:
        writer = self._waiting.get(id)
        held = None if writer is None else writer.read_held()
        return self._shelf.open(id) if held is None else BytesReader(held)

    def append_journal(self, lines: bytes) -> None:
        if self._is_delayed():
            raise StoreError("The store does not answer, and outputs wait to be stored. Nothing is recorded before they are.")
        self._shelf.append_journal(lines)

    def settle(self) -> None:
        """Store what waits, as far as the store answers. Blocks."""
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
        self._shelf.close()

    def reserve(self, size: int) -> bool:
        with self._mutex:
            is_room = self._held_bytes + size <= MAX_WAITING_BYTES
            self._held_bytes += size if is_room else 0
            return is_room

    def release(self, size: int) -> None:
        with self._mutex:
            self._held_bytes -= size

    def wait_for(self, id: str, writer: WaitingWriter) -> None:
        self._waiting[id] = writer  # before the thread is looked for, which ends only if it finds nothing here
        with self._mutex:
            is_tried, self._is_trying = self._is_trying, True
        if not is_tried:
            Thread(target=self._settle_later, name="overspill-waiting", daemon=True).start()

    def _settle_later(self) -> None:
        while not self._closed.wait(_SECONDS_BETWEEN_ATTEMPTS):
            self.settle()
            with self._mutex:
                self._is_trying = self._is_delayed()
                if not self._is_trying:
                    return

    def _is_delayed(self) -> bool:
        return any(not writer.refusal for writer in list(self._waiting.values()))


class WaitingWriter:
    """`is_waiting`: whether it was committed here, but not in the store. `refusal`: why it may never be."""

    def __init__(self, shelf: WaitingShelf, id: str) -> None:
        self.is_waiting = False
        self.refusal = ""
        self._shelf = shelf
        self._id = id
        self._writer: Writer | None = None
        self._held = bytearray()
        self._tried_bytes = 0
        """How much of it the store may have, if only its answer was lost. It takes that only as it was sent before."""
        self._mutex = Lock()
        rules.check_id(id)

    @property
    def size(self) -> int:
        return self._stored_bytes + len(self._held)

    @property
    def _stored_bytes(self) -> int:
        return 0 if self._writer is None else self._writer.size

    def append(self, data: bytes | memoryview) -> None:
        with self._mutex:
            view, before = memoryview(data).cast("B"), self._stored_bytes
            try:
                if self._held:
                    raise StoreAway(_NO_ROOM)  # later bytes wait behind earlier ones
                self._ensure_writer().append(view)
            except StoreAway as error:
                rest = view[self._stored_bytes - before :]
                if not self._shelf.reserve(len(rest)):
                    raise StoreAway(_NO_ROOM) from error
                self._tried_bytes = self._tried_bytes or len(rest)
                self._held += rest

    def commit(self) -> None:
        with self._mutex:
            try:
                if self._held:
                    raise StoreAway(_NO_ROOM)
                self._ensure_writer().commit()
            except StoreAway:
                self.is_waiting = True
                self._shelf.wait_for(self._id, self)

    def discard(self) -> None:
        with self._mutex:
            if self.is_waiting:  # what is committed stays, wherever it is
                return
            self._shelf.release(len(self._held))
            self._held.clear()
            if self._writer is not None:
                self._writer.discard()

    def settle(self) -> bool:
        """Whether the store has it now. Raises StoreAway while it does not answer."""
        with self._mutex:
            try:
                self._store_held(self._ensure_writer())
            except StoreAway:
                raise
            except StoreError as error:
                if not self.refusal:
                    logger.error(
                        "%s is not stored, and can be read only until its session closes: %s",
                        handles.handle(self._shelf.session, self._id),
                        error,
                    )
                self.refusal = str(error) or type(error).__name__
            else:
                self.is_waiting = False
            return not self.is_waiting

    def _store_held(self, writer: Writer) -> None:
        while self._held:
            before = writer.size
            try:
                writer.append(bytes(self._held[: self._tried_bytes or None]))
            finally:
                stored = writer.size - before
                del self._held[:stored]
                self._tried_bytes = max(0, self._tried_bytes - stored)
                self._shelf.release(stored)
        writer.commit()

    def read_held(self) -> bytes | None:
        """All of it, if all of it is in memory."""
        with self._mutex:
            return bytes(self._held) if self.is_waiting and not self._stored_bytes else None

    def _ensure_writer(self) -> Writer:
        if self._writer is None:
            self._writer = self._shelf.create_now(self._id)
        return self._writer
