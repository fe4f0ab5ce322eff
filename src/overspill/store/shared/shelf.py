"""One session on a server, opened for reading or held by the session that writes to it.

Its readers fetch ranges of an output, and copy the output for uses that need all of its bytes, such as SQL.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from threading import RLock
from typing import Protocol

from msgspec import Struct

from overspill import handles
from overspill.errors import StoreError
from overspill.store import rules
from overspill.store.protocols import Retention
from overspill.store.quota import OutputQuota
from overspill.store.readers import BytesReader, Sink
from overspill.store.recent import Recent
from overspill.store.shelf import BaseShelf
from overspill.text import lenient_json

_MAX_NOTES = 1_000
_MAX_COPIED_BYTES = 1 << 30
"""The total size of copies that are not in use. A copy in use stays, at any size."""
_SLICE_BYTES = 8 << 20


class LocalCopies(Recent[str, BytesReader]):
    """Copies of outputs that never change, by handle."""

    def __init__(self) -> None:
        super().__init__(_MAX_COPIED_BYTES, lambda copy: copy.size)

    def copy(self, handle: str, size: int, read: Callable[[int, int], bytes]) -> BytesReader:
        """A local copy of an output. `read` fetches a range of the output."""
        with self.making(handle):
            if (found := self.get(handle)) is None:
                found = self[handle] = copy_bytes(size, read)
            return found


def copy_bytes(size: int, read: Callable[[int, int], bytes]) -> BytesReader:
    with Sink() as sink:
        for start in range(0, size, _SLICE_BYTES):
            sink.add(read(start, min(size, start + _SLICE_BYTES)))
        return sink.reader()


class OutputSource(Protocol):
    """The stored bytes of one output."""

    url: str
    """The URL of the store."""

    def measure(self) -> tuple[int, bool]:
        """The number of bytes, and whether the output is complete. A complete output never changes, so one request is enough."""
        ...

    def read(self, start: int, end: int) -> bytes:
        """The stored bytes start..end: fewer if the output has been removed."""
        ...

    def is_removed(self) -> bool: ...


class SharedReader:
    def __init__(self, session: str, id: str, source: OutputSource, copies: LocalCopies) -> None:
        self._handle = handles.handle(session, id)
        self._source = source
        self._copies = copies
        self._copy: BytesReader | None = None
        self._is_open = True
        self._mutex = RLock()

    @property
    def size(self) -> int:
        self._check_open()
        return self._source.measure()[0]

    def read(self, start: int, end: int) -> bytes:
        start, end = max(start, 0), min(end, self.size)
        return self._read(start, end) if start < end else b""

    def buffer(self) -> memoryview:
        with self._mutex:
            self._check_open()
            size, is_complete = self._source.measure()
            if self._copy is None or self._copy.size != size:
                self._copy = self._copies.copy(self._handle, size, self._read) if is_complete else copy_bytes(size, self._read)
            return self._copy.buffer()

    @property
    def is_removed(self) -> bool:
        self._check_open()
        return self._source.is_removed()

    def close(self) -> None:
        self._is_open = False
        self._copy = None

    def _read(self, start: int, end: int) -> bytes:
        data = self._source.read(start, end)
        if len(data) < end - start:
            raise StoreError(f"{self._handle} has been removed from {self._source.url}. Call the tool again.")
        return data

    def _check_open(self) -> None:
        if not self._is_open:
            raise rules.closed_error("reader")


class _StoredId(Struct, frozen=True):
    id: str


class _StoredLine(Struct, frozen=True, tag_field="event", tag="kept"):
    """The part of a journal's line about a stored output that the index needs."""

    kept: _StoredId


class Hold(Struct, frozen=True):
    """How this process has a session open."""

    id: str
    retention: Retention
    quota: OutputQuota
    ended: Callable[[SharedShelf], None]
    has_relatives: bool


class SharedShelf(BaseShelf):
    """Every write raises StoreError if another process has taken the session."""

    seconds_between_notes: float
    """The limits count days, so one note is enough for many reads of an output."""

    def __init__(self, session: str, copies: LocalCopies, hold: Hold | None = None) -> None:
        super().__init__(session, hold.quota if hold else None)
        self.hold = hold
        self._copies = copies
        self._noted: dict[str, float] = {}

    def open(self, id: str) -> SharedReader:
        rules.check_id(id)
        self._check_open()
        writer = self.writers.get(id)
        source = self._find(id, is_begun=writer is None or writer.size > 0)
        return SharedReader(self.session, id, source, self._copies)

    def note_read(self, id: str) -> None:
        if not handles.is_uuid(id) or time.monotonic() < self._noted.get(id, 0):
            return
        if len(self._noted) >= _MAX_NOTES:
            self._noted.clear()
        self._noted[id] = time.monotonic() + self.seconds_between_notes
        # A store that does not answer cannot note the read, but cannot expire anything either.
        with suppress(StoreError):
            self._note_read(id)

    def journal(self) -> Iterator[bytes]:
        self._check_open()
        yield self._read_opening()
        for _, lines in self._read_entries(0):
            yield from rules.split_lines(lines)

    def read_on(self, position: int) -> tuple[list[bytes], int]:
        self._check_open()
        entries = list(self._read_entries(position))
        return [line for _, lines in entries for line in rules.split_lines(lines)], entries[-1][0] if entries else position

    def leave(self, hold: Hold) -> None:
        """End the session, and remove it unless it is kept. Does nothing if another process has taken it."""
        raise NotImplementedError

    def _find(self, id: str, *, is_begun: bool) -> OutputSource:
        """Find an output. Raises UnknownHandle if it does not exist or was removed. `is_begun`: whether any of it is stored."""
        raise NotImplementedError

    def _note_read(self, id: str) -> None:
        raise NotImplementedError

    def _read_opening(self) -> bytes:
        """The first line. Raises UnknownHandle if the session does not exist."""
        raise NotImplementedError

    def _read_entries(self, position: int) -> Iterable[tuple[int, bytes]]:
        """What was written to the journal after a position, and the position after it."""
        raise NotImplementedError

    def _write_recorded(self, lines: bytes, recorded: Sequence[tuple[str, bytes]]) -> None:
        """`recorded` pairs outputs with the lines about them, to find them by the ends of their ids."""
        raise NotImplementedError

    def _write_journal(self, lines: bytes) -> None:
        self._write_recorded(lines, _find_recorded(lines) if self.hold and self.hold.has_relatives else ())

    def _leave(self) -> None:
        if self.hold and not self._is_inherited():
            self.hold.ended(self)


def _find_recorded(lines: bytes) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for line in rules.split_lines(lines):
        if b'"event":"kept"' in line:  # most lines are not decoded
            event = lenient_json.parse(line, _StoredLine)
            found += [(event.kept.id, line)] if event and handles.is_uuid(event.kept.id) else []
    return found


def lost_session_error(session: str) -> StoreError:
    return StoreError(
        f"Session {session} can no longer write: this process was out of touch with the store for so long that it was taken for "
        "dead. What was stored before is still there. Open the session again."
    )
