"""One session on a server: opened for reading, or held by the session that writes to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

from msgspec import Struct

from overspill import handles
from overspill.errors import StoreError
from overspill.store import rules
from overspill.store.copies import LocalCopies
from overspill.store.protocols import Retention
from overspill.store.quota import OutputQuota
from overspill.store.shared.lease import Lease
from overspill.store.shared.output import OutputSource, SharedReader
from overspill.store.shelf import BaseShelf
from overspill.store.writer import OutputParts
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


class SharedShelf(BaseShelf):
    def __init__(self, place: SessionPlace, copies: LocalCopies, quota: OutputQuota | None = None) -> None:
        super().__init__(place.session, quota)
        self._place: SessionPlace = place
        self._copies = copies
        self._noted: dict[str, float] = {}

    def open(self, id: str) -> SharedReader:
        rules.check_id(id)
        self._check_open()
        return SharedReader(self.session, id, self._find(id), self._copies)

    def note_read(self, id: str) -> None:
        if not handles.is_uuid(id) or time.monotonic() < self._noted.get(id, 0):
            return
        if len(self._noted) >= _MAX_NOTES:
            self._noted.clear()
        self._noted[id] = time.monotonic() + self._place.seconds_between_notes
        # A store that is away cannot note the read, but cannot expire either.
        with suppress(StoreError):
            self._place.note_read(id)

    def journal(self) -> Iterator[bytes]:
        self._check_open()
        yield from self._place.read_journal()

    def read_on(self, position: int) -> tuple[list[bytes], int]:
        self._check_open()
        return self._place.read_on(position)

    def _find(self, id: str) -> OutputSource:
        return self._place.find(id)


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
        super().__init__(place, copies, quota)
        self.hold = place.hold
        self.lease = lease
        self.retention: Retention = retention
        self._held = place
        self._ended = ended
        self._has_relatives = has_relatives

    def leave(self) -> None:
        self._held.leave(self.retention)

    def _find(self, id: str) -> OutputSource:
        writer = self._writers.get(id)
        return self._held.expect(id) if writer is not None and not writer.size else super()._find(id)

    def _make_parts(self, id: str) -> OutputParts:
        return self._held.create(id)

    def _write_journal(self, lines: bytes) -> None:
        self._held.append_journal(lines, _find_recorded(lines) if self._has_relatives else ())

    def _remove_outputs(self, stays: Callable[[str], bool]) -> int:
        return self._held.remove_outputs(stays)

    def _leave(self) -> None:
        if not self._is_inherited():
            self._ended(self)

    def _is_inherited(self) -> bool:
        return self.lease.is_inherited


def _find_recorded(lines: bytes) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for line in lines[:-1].split(b"\n"):
        if b'"event":"kept"' in line:  # most lines are not decoded
            event = own_json.parse(line, _StoredLine)
            found += [(event.kept.id, line + b"\n")] if event and handles.is_uuid(event.kept.id) else []
    return found
