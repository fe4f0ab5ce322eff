"""One output as rows: its pieces, written one after another, and ranges of them."""

from __future__ import annotations

from typing import Any

from overspill import handles
from overspill.errors import StoreError
from overspill.store import rules
from overspill.store.postgres.database import Database
from overspill.store.postgres.schema import MAX_PIECE_BYTES, SCHEMA
from overspill.store.shared.lease import lost_session_error
from overspill.store.writer import OutputParts

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
SELECT substring(data FROM (greatest(%(start)s - start, 0) + 1)::int FOR (%(end)s - greatest(%(start)s, start))::int)
FROM {SCHEMA}.pieces
WHERE session = %(session)s AND id = %(id)s AND start > %(start)s - {MAX_PIECE_BYTES} AND start < %(end)s
    AND start + length(data) > %(start)s
ORDER BY start
"""


class PostgresParts(OutputParts):
    """Written by one hold."""

    max_bytes = MAX_PIECE_BYTES

    def __init__(self, database: Database, session: str, id: str, hold: str) -> None:
        self._database = database
        self._session = session
        self._handle = handles.handle(session, id)
        self._key = {"session": session, "id": id, "hold": hold}

    def add(self, data: memoryview) -> None:
        self._write(data, complete=False)
        self.size += data.nbytes

    def complete(self) -> None:
        self._write(memoryview(b""), complete=True)

    def remove(self) -> None:
        if self.size:
            self._database.rows(f"discard {self._handle}", DISCARD, self._key)

    def _write(self, data: memoryview, *, complete: bool) -> None:
        values: dict[str, Any] = {"start": self.size, "end": self.size + data.nbytes, "data": data, "complete": complete}
        is_held, is_stored = self._database.rows(f"store {self._handle}", WRITE, self._key | values)[0]
        if not is_held:
            raise lost_session_error(self._session)
        if not is_stored and not self.size:
            raise rules.already_exists_error(self._handle)
        if not is_stored:
            raise StoreError(f"{self._handle} was removed while it was being written. Call the tool again.")


class PostgresSource:
    def __init__(self, database: Database, session: str, id: str, size: int | None) -> None:
        """`size` is None if the output is still being written."""
        self.url = database.url
        self._database = database
        self._key = {"session": session, "id": id}
        self._doing = f"read {handles.handle(session, id)}"
        self._final_size = size
        self._was_found = size is not None

    def measure(self) -> tuple[int, bool]:
        if self._final_size is not None:
            return self._final_size, True
        found = self._find()
        if found is None:
            return 0, False
        self._was_found = True
        size, is_complete, _ = found
        if is_complete:
            self._final_size = size
        return size, is_complete

    def read(self, start: int, end: int) -> bytes:
        rows = self._database.rows(self._doing, READ, self._key | {"start": start, "end": end})
        return bytes(rows[0][0]) if len(rows) == 1 else b"".join(row[0] for row in rows)

    def is_removed(self) -> bool:
        found = self._find()
        return self._was_found if found is None else bool(found[2])

    def _find(self) -> tuple[Any, ...] | None:
        return next(iter(self._database.rows(self._doing, FIND, self._key)), None)
