"""One session's rows, read by everyone and written by the process that holds the session, and one output as pieces of it."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from overspill import handles
from overspill.errors import StoreError, UnknownHandle
from overspill.store import rules
from overspill.store.postgres import sql
from overspill.store.postgres.database import Database
from overspill.store.shared.shelf import Hold, LocalCopies, SharedShelf, lost_session_error
from overspill.store.shelf import OutputParts


class PostgresParts(OutputParts):
    """Written by one hold."""

    max_bytes = sql.MAX_PIECE_BYTES

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
            self._database.rows(f"discard {self._handle}", sql.DISCARD, self._key)

    def _write(self, data: memoryview, *, complete: bool) -> None:
        values: dict[str, Any] = {"start": self.size, "end": self.size + data.nbytes, "data": data, "complete": complete}
        is_held, is_stored = self._database.rows(f"store {self._handle}", sql.WRITE, self._key | values)[0]
        if not is_held:
            raise lost_session_error(self._session)
        if not is_stored and not self.size:
            raise rules.already_exists_error(self._handle)
        if not is_stored:
            raise StoreError(f"{self._handle} was removed while it was being written. Call the tool again.")


class PostgresSource:
    def __init__(self, database: Database, session: str, id: str) -> None:
        self.url = database.url
        self._database = database
        self._key = {"session": session, "id": id}
        self._doing = f"read {handles.handle(session, id)}"
        self._found: tuple[int, bool, bool] | None = None

    def find(self) -> tuple[int, bool, bool] | None:
        """The output's size, whether it is complete, and whether it is removed."""
        for size, is_complete, is_removed in self._database.rows(self._doing, sql.FIND, self._key):
            self._found = size, is_complete, is_removed
            return self._found
        return None

    def measure(self) -> tuple[int, bool]:
        found = self._found if self._found and self._found[1] else self.find()
        return found[:2] if found else (0, False)

    def read(self, start: int, end: int) -> bytes:
        rows = self._database.rows(self._doing, sql.READ, self._key | {"start": start, "end": end})
        return bytes(rows[0][0]) if len(rows) == 1 else b"".join(row[0] for row in rows)

    def is_removed(self) -> bool:
        found = self.find()
        return found[2] if found else self._found is not None


class PostgresShelf(SharedShelf):
    seconds_between_notes = 60.0

    def __init__(self, database: Database, session: str, copies: LocalCopies, hold: Hold | None = None) -> None:
        super().__init__(session, copies, hold)
        self._database = database
        self._key = {"session": session, "hold": hold.id if hold else ""}
        self._nth = itertools.count()

    def _find(self, id: str, *, is_begun: bool) -> PostgresSource:
        source = PostgresSource(self._database, self.session, id)
        if is_begun and ((found := source.find()) is None or found[2]):
            raise UnknownHandle(handles.handle(self.session, id))
        return source

    def last_used(self, id: str) -> float:
        for (used,) in self._database.rows("look at an output", sql.LAST_USED, {"session": self.session, "id": id}):
            return used
        raise UnknownHandle(handles.handle(self.session, id))

    def _note_read(self, id: str) -> None:
        self._database.rows("note a read", sql.NOTE_READ, {"session": self.session, "id": id})

    def _read_opening(self) -> bytes:
        for (opening,) in self._database.rows(f"read session {self.session}", sql.READ_OPENING, {"session": self.session}):
            return bytes(opening)
        raise UnknownHandle(f"session-{self.session}")

    def _read_entries(self, position: int) -> Iterator[tuple[int, bytes]]:
        doing = f"read the journal of session {self.session}"
        while rows := self._database.rows(doing, sql.READ_JOURNAL, {"session": self.session, "after": position}):
            yield from ((n, bytes(lines)) for n, lines in rows)
            if len(rows) < sql.JOURNAL_PAGE_ROWS:
                return
            position = rows[-1][0]

    def _make_parts(self, id: str) -> PostgresParts:
        return PostgresParts(self._database, self.session, id, self._key["hold"])

    def _write_recorded(self, lines: bytes, recorded: Sequence[tuple[str, bytes]]) -> None:
        # Numbered, so that a write repeated after a broken connection counts once.
        values: dict[str, object] = {**self._key, "nth": next(self._nth), "lines": lines}
        statement = sql.APPEND_JOURNAL
        if recorded and self._database.has_index:
            statement = sql.APPEND_RECORDED
            values |= {"ids": [id for id, _ in recorded], "recorded": [line for _, line in recorded]}
        is_held = self._database.rows(f"write to the journal of session {self.session}", statement, values)[0][0]
        if not is_held:
            raise lost_session_error(self.session)

    def _remove_outputs(self, stays: Collection[str]) -> int:
        """Remove all outputs but `stays` and those that another live process is writing. Returns how many bytes they had."""
        doing = f"clear up session {self.session}"
        found = {str(id): size for id, size in self._database.rows(doing, sql.LIST_OUTPUTS, self._key)}
        doomed = [id for id in found if id not in stays]
        if doomed:
            self._database.rows(doing, sql.REMOVE_OUTPUTS, {"session": self.session, "ids": doomed})
        return sum(found[id] for id in doomed)

    def leave(self, hold: Hold) -> None:
        statement = sql.REMOVE_OWN if hold.retention == "session" else sql.RELEASE
        self._database.rows(f"close session {self.session}", statement, self._key)
