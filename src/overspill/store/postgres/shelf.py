"""One session's rows: opened for reading, or held by the session that writes to them."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from threading import Lock

from overspill import handles
from overspill.errors import StoreError, UnknownHandle
from overspill.store import rules
from overspill.store.copies import LocalCopies
from overspill.store.postgres import output
from overspill.store.postgres.database import Database
from overspill.store.postgres.output import PostgresReader, PostgresWriter, lost_session_error
from overspill.store.postgres.run import Run
from overspill.store.postgres.schema import SCHEMA
from overspill.store.protocols import Retention, Writer
from overspill.store.quota import OutputQuota

_JOURNAL_PAGE_ROWS = 1_000
_SECONDS_BETWEEN_NOTES = 60
_MAX_NOTES = 1_000

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


class PostgresShelf:
    """For reading only."""

    def __init__(self, database: Database, copies: LocalCopies, session: str) -> None:
        self.session = session
        self._database = database
        self._copies = copies
        self._is_closed = False
        self._noted: dict[str, float] = {}

    def create(self, id: str) -> Writer:
        raise rules.read_only_error(self.session)

    def open(self, id: str) -> PostgresReader:
        rules.check_id(id)
        self._check_open()
        handle = handles.handle(self.session, id)
        for size, is_complete, is_removed in self._database.rows(
            f"open {handle}", output.FIND, {"session": self.session, "id": id}
        ):
            if not is_removed:
                return PostgresReader(self._database, self._copies, self.session, id, size if is_complete else None)
        raise UnknownHandle(handle)

    def note_read(self, id: str) -> None:
        # The limits count days, so that many reads of one output need one note.
        if time.monotonic() < self._noted.get(id, 0):
            return
        if len(self._noted) >= _MAX_NOTES:
            self._noted.clear()
        self._noted[id] = time.monotonic() + _SECONDS_BETWEEN_NOTES
        # A store that is away cannot note the read, but cannot expire either.
        with suppress(StoreError):
            self._database.rows("note a read", NOTE_READ, {"session": self.session, "id": id})

    def append_journal(self, lines: bytes) -> None:
        raise rules.read_only_error(self.session)

    def journal(self) -> Iterator[bytes]:
        self._check_open()
        doing = f"read the journal of session {self.session}"
        opening = self._database.rows(doing, READ_OPENING, {"session": self.session})
        if not opening:
            raise UnknownHandle(f"session-{self.session}")
        yield bytes(opening[0][0])
        after = 0
        while rows := self._database.rows(doing, READ_JOURNAL, {"session": self.session, "after": after}):
            for _, lines in rows:
                yield from (line + b"\n" for line in bytes(lines)[:-1].split(b"\n"))
            if len(rows) < _JOURNAL_PAGE_ROWS:
                return
            after = rows[-1][0]

    def remove_unrecorded(self, recorded: Container[str]) -> int:
        raise rules.read_only_error(self.session)

    def close(self) -> None:
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise rules.closed_error("shelf")


class LivePostgresShelf(PostgresShelf):
    def __init__(
        self,
        database: Database,
        copies: LocalCopies,
        session: str,
        *,
        run: Run,
        hold: str,
        retention: Retention,
        quota: OutputQuota,
        ended: Callable[[LivePostgresShelf], None],
    ) -> None:
        super().__init__(database, copies, session)
        self.retention: Retention = retention
        self.hold = hold
        self._run = run
        self._nth = itertools.count()
        self._quota = quota
        self._ended = ended
        self._writers: dict[str, PostgresWriter] = {}
        self._mutex = Lock()

    def create(self, id: str) -> PostgresWriter:
        """Nothing is asked of the server yet: the first write creates the output, or finds that the id is taken."""
        rules.check_id(id)
        with self._mutex:
            self._check_writable()
            if id in self._writers:
                raise rules.already_exists_error(handles.handle(self.session, id))
            writer = self._writers[id] = PostgresWriter(
                self._database,
                self.hold,
                self.session,
                id,
                quota=self._quota,
                check=self._check_writable,
                ended=self._forget_writer,
            )
            return writer

    def open(self, id: str) -> PostgresReader:
        writer = self._writers.get(id)
        if writer is not None and not writer.size:
            self._check_open()
            return PostgresReader(self._database, self._copies, self.session, id, None)
        return super().open(id)

    def append_journal(self, lines: bytes) -> None:
        rules.check_lines(lines)
        self._check_writable()
        # Numbered, so that a write that is repeated because the connection broke counts once.
        values = {"session": self.session, "hold": self.hold, "nth": next(self._nth), "lines": lines}
        is_held = self._database.rows(f"write to the journal of session {self.session}", APPEND_JOURNAL, values)[0][0]
        if not is_held:
            raise lost_session_error(self.session)

    def remove_unrecorded(self, recorded: Container[str]) -> int:
        """What another live process is still writing stays."""
        self._check_writable()
        doing = f"clear up session {self.session}"
        key = {"session": self.session, "hold": self.hold}
        with self._mutex:
            found = {str(id): size for id, size in self._database.rows(doing, LIST_OUTPUTS, key)}
            doomed = [id for id in found if id not in recorded and id not in self._writers]
            if doomed:
                self._database.rows(doing, REMOVE_OUTPUTS, {"session": self.session, "ids": doomed})
        return sum(found[id] for id in doomed)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for writer in list(self._writers.values()):
            writer.abandon()
        if not self._is_inherited:  # in a forked child, the session belongs to its parent and has not ended
            self._ended(self)

    @property
    def _is_inherited(self) -> bool:
        return self._run.pid != os.getpid()

    def list_writing(self) -> list[str]:
        return list(self._writers)

    def _check_writable(self) -> None:
        self._check_open()
        if self._is_inherited:
            raise StoreError(
                f"Session {self.session} belongs to the process this one was forked from. Open a new session in this process."
            )

    def _forget_writer(self, id: str) -> None:
        self._writers.pop(id, None)
