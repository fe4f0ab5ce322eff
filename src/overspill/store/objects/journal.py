"""A session's journal as objects: one for each write, and one for many when there are many. Several holds write side by side."""

from __future__ import annotations

import time
from threading import Lock

from msgspec import Struct

from overspill.errors import StoreError
from overspill.store.objects.bucket import Bucket

_EVENTS_IN_ONE = 64
"""So many writes are put together into one object, so that reading them is one request."""
_ATTEMPTS = 5


class Entry(Struct, frozen=True, order=True):
    """A key of the journal. `first` and `last` number the writes of one hold."""

    ms: int
    hold: str
    first: int
    last: int

    @classmethod
    def parse(cls, key: str) -> Entry:
        try:
            ms, hold, first, last = key.rpartition("/")[2].split(".")
            return cls(int(ms), hold, int(first), int(last))
        except ValueError:
            raise StoreError(f"Its journal is damaged: Overspill did not write {key!r}. Remove that object.") from None

    def has(self, single: Entry) -> bool:
        return self.hold == single.hold and self.first <= single.first <= self.last

    def key(self, session: str) -> str:
        return f"journal/{session}/{self.ms:013}.{self.hold}.{self.first:08}.{self.last:08}"


class ObjectJournal:
    """Written by one hold."""

    def __init__(self, bucket: Bucket, session: str, hold: str) -> None:
        self._bucket = bucket
        self._session = session
        self._hold = hold
        self._next = 0
        self._ms = 0
        self._waiting: list[tuple[Entry, bytes]] = []
        self._mutex = Lock()

    def append(self, lines: bytes) -> None:
        with self._mutex:
            # Never before the one before it, whatever the clock says.
            self._ms = max(self._ms, time.time_ns() // 1_000_000)
            entry = Entry(self._ms, self._hold, self._next, self._next)
            self._bucket.put(entry.key(self._session), lines)
            self._next += 1
            self._waiting.append((entry, lines))
            if len(self._waiting) >= _EVENTS_IN_ONE:
                self._compact()

    def close(self) -> None:
        with self._mutex:
            if len(self._waiting) > 1:
                self._compact()

    def _compact(self) -> None:
        """Called with the mutex held. Until the single objects are gone, readers skip those that the new one has."""
        singles = [entry for entry, _ in self._waiting]
        joined = Entry(singles[0].ms, self._hold, singles[0].first, singles[-1].last)
        self._bucket.put(joined.key(self._session), b"".join(lines for _, lines in self._waiting))
        self._bucket.delete([entry.key(self._session) for entry in singles])
        self._waiting = []


def read_entries(bucket: Bucket, session: str, position: int) -> list[tuple[int, bytes]]:
    """What was written from a write of this number on, oldest first, each with the number of the last write: that one is read
    again, because its writer may not know that it arrived, and repeat it with more lines. Where several holds have written, each
    counts for itself, and all is read."""
    for _ in range(_ATTEMPTS):
        entries = sorted(Entry.parse(item.key) for item in bucket.list(f"journal/{session}/"))
        is_counted = len({entry.hold for entry in entries}) == 1
        new = [entry for entry in entries if entry.last >= position or not is_counted]
        if (found := _read_all(bucket, session, new)) is not None:
            last = max(entry.last for entry in entries) if is_counted else 0
            return [(last, lines) for lines in found]
    raise StoreError(f"The journal of session {session} changes faster than it can be read. Try again.")


def _read_all(bucket: Bucket, session: str, entries: list[Entry]) -> list[bytes] | None:
    """None if objects were put together after they were listed."""
    joined = [entry for entry in entries if entry.last > entry.first]
    wanted = [entry for entry in entries if entry.last > entry.first or not any(each.has(entry) for each in joined)]
    found: list[bytes] = []
    for lines in bucket.get_all([entry.key(session) for entry in wanted]):
        if lines is None:
            return None
        found.append(lines)
    return found
