"""One session's rows: read by everyone, and written by the process that holds the session."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence

from overspill import handles
from overspill.errors import UnknownHandle
from overspill.store.postgres import sql
from overspill.store.postgres.database import Database
from overspill.store.postgres.output import FIND, PostgresParts, PostgresSource
from overspill.store.postgres.schema import SCHEMA
from overspill.store.shared.lease import lost_session_error
from overspill.store.shared.output import LocalCopies
from overspill.store.shared.shelf import Hold, SharedShelf

_JOURNAL_PAGE_ROWS = 1_000

NOTE_READ = f"UPDATE {SCHEMA}.outputs SET used = now() WHERE session = %(session)s AND id = %(id)s AND removed IS NULL"
APPEND_JOURNAL = f"""
WITH held AS (
    SELECT FROM {SCHEMA}.holds WHERE hold = %(hold)s FOR KEY SHARE
), line AS (
    INSERT INTO {SCHEMA}.journal (session, hold, nth, lines)
    SELECT %(session)s::uuid, %(hold)s::uuid, %(nth)s, %(lines)s::bytea FROM held ON CONFLICT (session, hold, nth) DO NOTHING
)
SELECT EXISTS (SELECT FROM held)
"""
APPEND_RECORDED = APPEND_JOURNAL.replace(
    "SELECT EXISTS",
    f""", recorded AS (
    INSERT INTO {SCHEMA}.recorded (session, id, line)
    SELECT %(session)s::uuid, each.id, each.line FROM held, unnest(%(ids)s::uuid[], %(recorded)s::bytea[]) AS each (id, line)
    ON CONFLICT DO NOTHING
)
SELECT EXISTS""",
)
READ_OPENING = f"SELECT opening FROM {SCHEMA}.sessions WHERE session = %(session)s"
READ_JOURNAL = f"""
SELECT n, lines FROM {SCHEMA}.journal WHERE session = %(session)s AND n > %(after)s ORDER BY n LIMIT {_JOURNAL_PAGE_ROWS}
"""
LIST_OUTPUTS = f"""
SELECT id, size FROM {SCHEMA}.outputs
WHERE session = %(session)s AND removed IS NULL
    AND (hold = %(hold)s OR hold NOT IN (SELECT hold FROM {SCHEMA}.holds JOIN {SCHEMA}.runs USING (run) WHERE until > now()))
"""
REMOVE_OUTPUTS = f"DELETE FROM {SCHEMA}.outputs WHERE session = %(session)s AND id = ANY(%(ids)s::uuid[])"


class PostgresShelf(SharedShelf):
    seconds_between_notes = 60.0

    def __init__(self, database: Database, session: str, copies: LocalCopies, hold: Hold | None = None) -> None:
        super().__init__(session, copies, hold)
        self._database = database
        self._key = {"session": session, "hold": hold.id if hold else ""}
        self._nth = itertools.count()

    def _find(self, id: str, *, is_begun: bool) -> PostgresSource:
        handle, final_size = handles.handle(self.session, id), None
        if is_begun:
            found = self._database.rows(f"open {handle}", FIND, {"session": self.session, "id": id})
            if not found or found[0][2]:
                raise UnknownHandle(handle)
            final_size = found[0][0] if found[0][1] else None
        return PostgresSource(self._database, self.session, id, final_size)

    def _note_read(self, id: str) -> None:
        self._database.rows("note a read", NOTE_READ, {"session": self.session, "id": id})

    def _read_opening(self) -> bytes:
        for (opening,) in self._database.rows(f"read session {self.session}", READ_OPENING, {"session": self.session}):
            return bytes(opening)
        raise UnknownHandle(f"session-{self.session}")

    def _read_entries(self, position: int) -> Iterator[tuple[int, bytes]]:
        doing = f"read the journal of session {self.session}"
        while rows := self._database.rows(doing, READ_JOURNAL, {"session": self.session, "after": position}):
            yield from ((n, bytes(lines)) for n, lines in rows)
            if len(rows) < _JOURNAL_PAGE_ROWS:
                return
            position = rows[-1][0]

    def _make_parts(self, id: str) -> PostgresParts:
        return PostgresParts(self._database, self.session, id, self._key["hold"])

    def _write_recorded(self, lines: bytes, recorded: Sequence[tuple[str, bytes]]) -> None:
        # Numbered, so that a write that is repeated because the connection broke counts once.
        values: dict[str, object] = {**self._key, "nth": next(self._nth), "lines": lines}
        statement = APPEND_JOURNAL
        if recorded and self._database.has_index:
            statement = APPEND_RECORDED
            values |= {"ids": [id for id, _ in recorded], "recorded": [line for _, line in recorded]}
        is_held = self._database.rows(f"write to the journal of session {self.session}", statement, values)[0][0]
        if not is_held:
            raise lost_session_error(self.session)

    def _remove_outputs(self, stays: Collection[str]) -> int:
        """What another live process is still writing stays too."""
        doing = f"clear up session {self.session}"
        found = {str(id): size for id, size in self._database.rows(doing, LIST_OUTPUTS, self._key)}
        doomed = [id for id in found if id not in stays]
        if doomed:
            self._database.rows(doing, REMOVE_OUTPUTS, {"session": self.session, "ids": doomed})
        return sum(found[id] for id in doomed)

    def leave(self, hold: Hold) -> None:
        statement = sql.REMOVE_OWN if hold.retention == "session" else sql.RELEASE
        self._database.rows(f"close session {self.session}", statement, self._key)
