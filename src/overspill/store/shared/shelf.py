"""One session on a server: opened for reading, or held by the session that writes to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from threading import Lock
from typing import Protocol

from msgspec import Struct

from overspill import handles
from overspill.errors import StoreError
from overspill.store import rules
from overspill.store.copies import LocalCopies
from overspill.store.protocols import Retention, Writer
from overspill.store.quota import OutputQuota
from overspill.store.shared.lease import Lease
from overspill.store.shared.output import OutputParts, OutputSource, SharedReader, SharedWriter
from overspill.text import own_json

_MAX_NOTES = 1_000


class _StoredId(Struct, frozen=True):
    id: str


class _StoredLine(Struct, frozen=True, tag_field="event", tag="kept"):
    """What the index needs of a journal's line about a stored output."""

    kept: _StoredId


class SessionPlace(Protocol):
    """What one session has on the server."""

    session: str
    seconds_between_notes: float
    """The limits count days, so that many reads of one output need one note."""

    def find(self, id: str) -> OutputSource:
        """Raises UnknownHandle if there is no such output, or if it was removed."""
        ...

    def note_read(self, id: str) -> None: ...
    def read_journal(self) -> Iterator[bytes]:
        """Raises UnknownHandle if there is no such session."""
        ...

    def read_on(self, position: int) -> tuple[list[bytes], int]: ...


class HeldPlace(SessionPlace, Protocol):
    """What a session that is open here may write. Whatever writes raises StoreError if another process has taken the session."""

    hold: str

    def expect(self, id: str) -> OutputSource:
        """An output of which nothing is stored yet."""
        ...

    def create(self, id: str) -> OutputParts:
        """Asks nothing of the server yet."""
        ...

    def append_journal(self, lines: bytes, recorded: Sequence[tuple[str, bytes]]) -> None:
        """`recorded` are outputs to be found by the ends of their ids, and those of the lines that are about them."""
        ...

    def remove_outputs(self, stays: Callable[[str], bool]) -> int:
        """All but those that stay. Returns how many bytes they had."""
        ...

    def leave(self, retention: Retention) -> None:
        """End the session, and remove it if it is not to be kept. Does nothing to one that another process has taken."""
        ...


class SharedShelf:
    """For reading only."""

    def __init__(self, place: SessionPlace, copies: LocalCopies) -> None:
        self.session = place.session
        self._place: SessionPlace = place
        self._copies = copies
        self._is_closed = False
        self._noted: dict[str, float] = {}

    def create(self, id: str) -> Writer:
        raise rules.read_only_error(self.session)

    def open(self, id: str) -> SharedReader:
        rules.check_id(id)
        self._check_open()
        return SharedReader(self.session, id, self._place.find(id), self._copies)

    def note_read(self, id: str) -> None:
        if not handles.is_uuid(id) or time.monotonic() < self._noted.get(id, 0):
            return
        if len(self._noted) >= _MAX_NOTES:
            self._noted.clear()
        self._noted[id] = time.monotonic() + self._place.seconds_between_notes
        # A store that is away cannot note the read, but cannot expire either.
        with suppress(StoreError):
            self._place.note_read(id)

    def append_journal(self, lines: bytes) -> None:
        raise rules.read_only_error(self.session)

    def journal(self) -> Iterator[bytes]:
        self._check_open()
        yield from self._place.read_journal()

    def read_on(self, position: int) -> tuple[list[bytes], int]:
        self._check_open()
        return self._place.read_on(position)

    def remove_unrecorded(self, recorded: Container[str]) -> int:
        raise rules.read_only_error(self.session)

    def close(self) -> None:
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise rules.closed_error("shelf")


class LiveSharedShelf(SharedShelf):
    def __init__(
        self,
        place: HeldPlace,
        copies: LocalCopies,
        *,
        lease: Lease,
        retention: Retention,
        quota: OutputQuota,
        ended: Callable[[LiveSharedShelf], None],
        has_relatives: bool,
    ) -> None:
        super().__init__(place, copies)
        self.hold = place.hold
        self.lease = lease
        self.retention: Retention = retention
        self._held = place
        self._quota = quota
        self._ended = ended
        self._has_relatives = has_relatives
        self._writers: dict[str, SharedWriter] = {}
        self._mutex = Lock()

    def create(self, id: str) -> SharedWriter:
        rules.check_id(id)
        with self._mutex:
            self._check_writable()
            if id in self._writers:
                raise rules.already_exists_error(handles.handle(self.session, id))
            parts = self._held.create(id)
            writer = self._writers[id] = SharedWriter(
                self.session, id, parts, quota=self._quota, check=self._check_writable, ended=self._forget_writer
            )
            return writer

    def open(self, id: str) -> SharedReader:
        writer = self._writers.get(id)
        if writer is not None and not writer.size:
            self._check_open()
            return SharedReader(self.session, id, self._held.expect(id), self._copies)
        return super().open(id)

    def append_journal(self, lines: bytes) -> None:
        rules.check_lines(lines)
        self._check_writable()
        self._held.append_journal(lines, _find_recorded(lines) if self._has_relatives else ())

    def remove_unrecorded(self, recorded: Container[str]) -> int:
        self._check_writable()
        with self._mutex:
            return self._held.remove_outputs(lambda id: id in recorded or id in self._writers)

    def leave(self) -> None:
        self._held.leave(self.retention)

    def list_writing(self) -> list[str]:
        return list(self._writers)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for writer in list(self._writers.values()):
            writer.abandon()
        if not self.lease.is_inherited:  # or else the session is the parent's, and has not ended
            self._ended(self)

    def _check_writable(self) -> None:
        self._check_open()
        if self.lease.is_inherited:
            raise StoreError(
                f"Session {self.session} belongs to the process this one was forked from. Open a new session in this process."
            )

    def _forget_writer(self, id: str) -> None:
        self._writers.pop(id, None)


def _find_recorded(lines: bytes) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for line in lines[:-1].split(b"\n"):
        if b'"event":"kept"' in line:  # most lines are not decoded
            event = own_json.parse(line, _StoredLine)
            found += [(event.kept.id, line + b"\n")] if event and handles.is_uuid(event.kept.id) else []
    return found
