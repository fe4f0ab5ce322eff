"""One session's objects: read by everyone, and written by the process that holds the session.

Its journal is one object for each write, and one for many when there are many. Several holds write side by side.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from threading import Lock

from msgspec import Struct

from overspill import handles
from overspill.errors import StoreError, UnknownHandle
from overspill.store.objects import removal
from overspill.store.objects.bucket import Bucket
from overspill.store.objects.names import BucketLease, Names
from overspill.store.objects.output import NOTHING_YET, USED, ObjectParts, ObjectSource, Parts, folder, read_parts, recorded_key
from overspill.store.shared.shelf import Hold, LocalCopies, SharedShelf, lost_session_error

_EVENTS_IN_ONE = 64
"""This many writes are combined into one object, which takes one request to read."""
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
            # Never earlier than the previous one, even if the clock was set back.
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
        """Combine single objects into one. Called with the mutex held. Readers skip the single ones until they are gone."""
        singles = [entry for entry, _ in self._waiting]
        joined = Entry(singles[0].ms, self._hold, singles[0].first, singles[-1].last)
        self._bucket.put(joined.key(self._session), b"".join(lines for _, lines in self._waiting))
        self._bucket.delete([entry.key(self._session) for entry in singles])
        self._waiting = []


class ObjectShelf(SharedShelf):
    seconds_between_notes = 3_600.0

    def __init__(self, bucket: Bucket, session: str, copies: LocalCopies, hold: Hold | None = None) -> None:
        super().__init__(session, copies, hold)
        self._bucket = bucket

    def _find(self, id: str, *, is_begun: bool) -> ObjectSource:
        return ObjectSource(self._bucket, self.session, id, self._find_parts(id) if is_begun else NOTHING_YET)

    def _find_parts(self, id: str) -> Parts:
        parts = read_parts(self._bucket, self.session, id)
        if parts is None or parts.is_removed:
            raise UnknownHandle(handles.handle(self.session, id))
        return parts

    def last_used(self, id: str) -> float:
        return self._find_parts(id).used

    def _note_read(self, id: str) -> None:
        self._bucket.put(folder(self.session, id) + USED)

    def _read_opening(self) -> bytes:
        opening = self._bucket.get(f"openings/{self.session}")
        if opening is None:
            raise UnknownHandle(f"session-{self.session}")
        return opening[0]

    def _read_entries(self, position: int) -> list[tuple[int, bytes]]:
        """The data from this write on, oldest first, each with the number of its last write. That write is read again: its writer
        may not know that it arrived, and may repeat it with more lines. If several holds have written, each has its own count,
        and everything is read."""
        for _ in range(_ATTEMPTS):
            entries = sorted(Entry.parse(item.key) for item in self._bucket.list(f"journal/{self.session}/"))
            is_counted = len({entry.hold for entry in entries}) == 1
            new = [entry for entry in entries if entry.last >= position or not is_counted]
            joined = [entry for entry in new if entry.last > entry.first]
            wanted = [entry for entry in new if entry.last > entry.first or not any(each.has(entry) for each in joined)]
            found = list(self._bucket.get_all([entry.key(self.session) for entry in wanted]))
            if None not in found:  # None: objects were combined after they were listed
                last = max(entry.last for entry in entries) if is_counted else 0
                return [(last, lines) for lines in found if lines is not None]
        raise StoreError(f"The journal of session {self.session} changes faster than it can be read. Try again.")


def hold_key(session: str, hold: str, run: BucketLease) -> str:
    return f"holds/{session}/{hold}/{run.id}"


class LiveObjectShelf(ObjectShelf):
    def __init__(
        self, bucket: Bucket, session: str, copies: LocalCopies, hold: Hold, run: BucketLease, names: Names, name: str
    ) -> None:
        super().__init__(bucket, session, copies, hold)
        self._hold_id, self._run, self._names, self._name = hold.id, run, names, name
        self._lapses = run.lapses
        self._mark = hold_key(session, hold.id, run)
        self._journal = ObjectJournal(bucket, session, hold.id)

    def _make_parts(self, id: str) -> ObjectParts:
        return ObjectParts(self._bucket, self.session, id, self._check_held)

    def _write_recorded(self, lines: bytes, recorded: Sequence[tuple[str, bytes]]) -> None:
        self._check_held()
        for id, line in recorded:  # first, because everything in the journal must be findable
            self._bucket.put(recorded_key(self.session, id), line)
        self._journal.append(lines)
        self._check_held()

    def _remove_outputs(self, stays: Collection[str]) -> int:
        self._check_held()
        removed = 0
        for id in removal.list_outputs(self._bucket, self.session):
            if id not in stays:
                parts = read_parts(self._bucket, self.session, id)
                removed += parts.size if parts and not parts.is_removed else 0
                removal.delete_output(self._bucket, self.session, id)
        return removed

    def leave(self, hold: Hold) -> None:
        if not self._still_has_name():
            self._bucket.delete([self._mark])
            return
        if hold.retention == "session":
            removal.delete_session(self._bucket, self.session)
            self._bucket.delete([f"temporary/{self._run.id}/{self.session}"])
        else:
            self._journal.close()
            self._bucket.put(f"used/{self.session}")
            self._bucket.delete([self._mark])
        if self._name:
            self._names.release(self._name, hold.id, keep=hold.retention == "keep")

    def _check_held(self) -> int:
        """Check once, after the lease has run out, whether another process has taken the session.

        The service cannot refuse a write for that reason, so this is called after each write too: one that came too late is not
        acknowledged. Returns how often the lease has run out.
        """
        lapses = self._run.check_lease()
        if lapses != self._lapses:
            if not self._still_has_name():
                raise lost_session_error(self.session)
            self._bucket.put(self._mark)  # others may have cleared it away
            self._lapses = lapses
        return lapses

    def _still_has_name(self) -> bool:
        """Whether this hold still has the session's name. False also if the session was removed."""
        has_name = not self._name or self._names.is_held_by(self._name, self._hold_id)
        return has_name and self._bucket.find(f"openings/{self.session}") is not None
