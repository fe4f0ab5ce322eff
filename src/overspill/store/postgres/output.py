"""One output as rows: a writer that appends pieces, and a reader that fetches ranges of them."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

from overspill import handles
from overspill.errors import StoreError
from overspill.store import rules
from overspill.store.copies import Copy, LocalCopies, copy_bytes
from overspill.store.postgres.database import Database
from overspill.store.postgres.schema import MAX_PIECE_BYTES, SCHEMA
from overspill.store.quota import OutputQuota

WRITE = f"""
WITH held AS (
    SELECT FROM {SCHEMA}.holds WHERE hold = %(hold)s FOR KEY SHARE
), output AS (
    INSERT INTO {SCHEMA}.outputs (session, id, hold, size, complete)
    SELECT %(session)s::uuid, %(id)s::uuid, %(hold)s::uuid, %(end)s, %(complete)s FROM held
    ON CONFLICT (session, id) DO UPDATE SET size = excluded.size, complete = excluded.complete, used = now()
        WHERE outputs.hold = excluded.hold AND outputs.size IN (%(start)s, excluded.size) AND outputs.removed IS NULL
            AND (NOT outputs.complete OR excluded.complete)
    RETURNING id
), piece AS (
    INSERT INTO {SCHEMA}.pieces (session, id, start, data)
    SELECT %(session)s::uuid, id, %(start)s, %(data)s::bytea FROM output WHERE %(end)s > %(start)s
    ON CONFLICT DO NOTHING
)
SELECT EXISTS (SELECT FROM held), EXISTS (SELECT FROM output)
"""
"""One round trip that creates an output, appends to it or completes it, and does nothing without the session's hold."""
DISCARD = f"DELETE FROM {SCHEMA}.outputs WHERE session = %(session)s AND id = %(id)s AND hold = %(hold)s AND NOT complete"
FIND = f"""
SELECT size, complete, removed IS NOT NULL FROM {SCHEMA}.outputs WHERE session = %(session)s AND id = %(id)s
"""
READ = f"""
SELECT substring(data FROM (greatest(%(start)s - start, 0) + 1)::int
    FOR (least(%(end)s, start + length(data)) - greatest(%(start)s, start))::int)
FROM {SCHEMA}.pieces
WHERE session = %(session)s AND id = %(id)s AND start > %(start)s - {MAX_PIECE_BYTES} AND start < %(end)s
    AND start + length(data) > %(start)s
ORDER BY start
"""


class PostgresWriter:
    def __init__(
        self,
        database: Database,
        hold: str,
        session: str,
        id: str,
        *,
        quota: OutputQuota,
        check: Callable[[], None],
        ended: Callable[[str], None],
    ) -> None:
        self._database = database
        self._key = {"session": session, "id": id, "hold": hold}
        self._session = session
        self._id = id
        self._handle = handles.handle(session, id)
        self._quota = quota
        self._check = check
        self._ended = ended
        self._size = 0
        self._open = True
        self._committed = False
        self._mutex = RLock()

    @property
    def size(self) -> int:
        return self._size

    def append(self, data: bytes | memoryview) -> None:
        view = rules.bytes_of(data)
        with self._mutex:
            self._check_open()
            before = self._size
            granted = self._quota.take(self._session, self._id, view.nbytes)
            try:
                for start in range(0, granted, MAX_PIECE_BYTES):
                    self._write(view[start : min(granted, start + MAX_PIECE_BYTES)])
            finally:
                self._quota.give_back(self._session, self._id, granted - (self._size - before))
        if granted < view.nbytes:
            raise self._quota.exhausted_error(view.nbytes - granted)

    def commit(self) -> None:
        with self._mutex:
            if self._committed:
                return
            self._check_open()
            self._write(memoryview(b""), complete=True)
            self._committed = True
            self.abandon()

    def discard(self) -> None:
        with self._mutex:
            if not self._open:
                return
            if self._size:
                self._database.rows(f"discard {self._handle}", DISCARD, self._key)
            self._quota.release(self._session, self._id)
            self.abandon()

    def abandon(self) -> None:
        """Stop writing and leave what is there."""
        with self._mutex:
            if self._open:
                self._open = False
                self._ended(self._id)

    def _check_open(self) -> None:
        if not self._open:
            raise rules.closed_error("output")
        self._check()

    def _write(self, data: memoryview, *, complete: bool = False) -> None:
        end = self._size + data.nbytes
        values: dict[str, Any] = {"start": self._size, "end": end, "data": data, "complete": complete}
        is_held, is_stored = self._database.rows(f"store {self._handle}", WRITE, self._key | values)[0]
        if not is_held:
            raise lost_session_error(self._session)
        if not is_stored:
            raise self._refusal()
        self._size = end

    def _refusal(self) -> StoreError:
        if not self._size:
            return rules.already_exists_error(self._handle)
        return StoreError(f"{self._handle} was removed while it was being written. Call the tool again.")


class PostgresReader:
    """An output that is complete never changes, so that only its bytes are asked for."""

    def __init__(self, database: Database, copies: LocalCopies, session: str, id: str, size: int | None) -> None:
        """`size` is None if the output is still being written."""
        self._database = database
        self._copies = copies
        self._key = {"session": session, "id": id}
        self._handle = handles.handle(session, id)
        self._final_size = size
        self._was_found = size is not None
        self._copy: Copy | None = None
        self._open = True
        self._mutex = RLock()

    @property
    def size(self) -> int:
        self._check_open()
        if self._final_size is None:
            found = self._find()
            if found is None:
                return 0
            self._was_found = True
            size, complete, _ = found
            if not complete:
                return size
            self._final_size = size
        return self._final_size

    def read(self, start: int, end: int) -> bytes:
        start, end = max(start, 0), min(end, self.size)
        return self._read(start, end) if start < end else b""

    def buffer(self) -> memoryview:
        with self._mutex:
            size = self.size
            if self._copy is None or len(self._copy) != size:
                is_final = self._final_size is not None
                self._copy = self._copies.get(self._handle, size, self._read) if is_final else copy_bytes(size, self._read)
            return memoryview(self._copy)

    @property
    def is_removed(self) -> bool:
        self._check_open()
        found = self._find()
        return self._was_found if found is None else bool(found[2])

    def close(self) -> None:
        self._open = False
        self._copy = None

    def _find(self) -> tuple[Any, ...] | None:
        return next(iter(self._database.rows(f"read {self._handle}", FIND, self._key)), None)

    def _read(self, start: int, end: int) -> bytes:
        """A range that is there: less of it means that it was removed."""
        if start >= end:
            return b""
        rows = self._database.rows(f"read {self._handle}", READ, self._key | {"start": start, "end": end})
        data = bytes(rows[0][0]) if len(rows) == 1 else b"".join(row[0] for row in rows)
        if len(data) < end - start:
            raise StoreError(f"{self._handle} has been removed from {self._database.url}. Call the tool again.")
        return data

    def _check_open(self) -> None:
        if not self._open:
            raise rules.closed_error("reader")


def lost_session_error(session: str) -> StoreError:
    return StoreError(
        f"Session {session} can no longer write: this process was out of touch with the store for so long that it was taken for "
        "dead. What was stored before is still there. Open the session again."
    )
