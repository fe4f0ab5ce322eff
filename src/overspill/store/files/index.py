"""One SQLite file in the root that saves later processes from looking at every session.

It can be rebuilt entirely from the sessions, and its entries are checked against them. A name is written before its session is
created and removed after it. A process that dies in between leaves a name that leads nowhere, but never a session that cannot be
found. A file that is damaged, or of another version, is replaced by an empty one, which is filled from the sessions.
"""

from __future__ import annotations

import os
import stat
import time
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from overspill import handles
from overspill.errors import StoreError
from overspill.store.files import layout, lock
from overspill.store.files.layout import Directory, Place
from overspill.store.keep import Measurement
from overspill.text import lenient_json

if TYPE_CHECKING:
    import sqlite3

FILE = "index.db"
_TABLES = (
    "CREATE TABLE names (name TEXT PRIMARY KEY, run TEXT NOT NULL, session TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE notes (kind TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID",
)
"""Spelled exactly as SQLite returns them, to recognise an index of another version or another program."""
# No write waits for the disk: `is_whole` says why that loses no name.
_SETTINGS = ("trusted_schema = OFF", "cell_size_check = ON", "journal_mode = DELETE", "synchronous = OFF")
_WHOLE, _MEASURED = "whole since ", "measured"
_MAX_NOTE_BYTES = 1 << 20  # more families than fit are measured by each process
_MAX_WAIT_SECONDS = 5.0  # for a process that writes at the same moment
_AWAY = {3, 5, 6, 7, 8, 10, 13, 14, 15, 23}
"""SQLite's codes for failures that do not concern the file's content, such as a busy file or a full disk."""
_NOT_A_DATABASE = 26
_EARLIER_WHOLE, _EARLIER_FILES = "whole", ("whole", "sizes", "name-")


class IndexAway(StoreError):
    """The index cannot be used now: another process has it for too long, the disk is full, or the file system has no locks."""


class IndexDamaged(StoreError):
    """The index is damaged, and gets replaced."""


class Index:
    """Open for a moment: a connection that lives longer would have to survive forks and threads."""

    def __init__(self, folder: Directory, within: float) -> None:
        self._folder = folder
        self._inode = folder.stat(FILE).st_ino
        # These locks are lost when any part of the process closes the file, so nothing else may open it.
        self._rows = _connect(folder, within)
        try:
            self._check()
        except BaseException:
            self._rows.close()
            raise

    def _check(self) -> None:
        for setting in _SETTINGS:
            self.ask(f"PRAGMA {setting}")
        if not self._list_tables():
            with self.change():
                for statement in _TABLES if not self._list_tables() else ():
                    self.ask(statement)
        if self._list_tables() != set(_TABLES):
            raise IndexDamaged("The index of names has another version. Try again.")
        if not os.path.samestat(os.stat(self._folder.path), os.fstat(self._folder.fd)):
            raise IndexAway(f"{self._folder.path} was moved. Open the session again.")

    def _list_tables(self) -> set[str]:
        return {statement for (statement,) in self.ask("SELECT sql FROM sqlite_schema")}

    def close(self) -> None:
        self._rows.close()

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with _explain():
            return self._rows.execute(statement, values).fetchall()

    @contextmanager
    def change(self) -> Generator[None]:
        """Make changes in one transaction, alone. Raises IndexAway if the file was removed before."""
        self.ask("BEGIN IMMEDIATE")
        try:
            if not self.is_there():
                raise IndexAway(f"{self._folder.path / FILE} was removed. Open the session again.")
            yield
        except BaseException:
            with suppress(StoreError):
                self.ask("ROLLBACK")
            raise
        self.ask("COMMIT")

    def is_there(self) -> bool:
        """Whether the file still exists. Another process may have removed it. While it is open, no other file gets its inode."""
        found = layout.find(self._folder, FILE)
        return found is not None and found.st_ino == self._inode

    def find(self, name: str) -> Place | None:
        """Where the session of this name may be. An invalid place becomes one that does not exist."""
        for run, session in self.ask("SELECT run, session FROM names WHERE name = ?", (name,)):
            is_possible = layout.is_run(str(run)) and handles.is_uuid(str(session))
            return Place(run, session) if is_possible else Place("", "")
        return None

    def put(self, name: str, place: Place, instead_of: Place | None) -> bool:
        """Set the place of a name, unless it has changed from `instead_of` (None: a new name). Returns whether it was set."""
        with self.change():
            if self.find(name) != instead_of:
                return False
            self.ask("INSERT OR REPLACE INTO names VALUES (?, ?, ?)", (name, place.run, place.session))
        return True

    def remove(self, name: str, place: Place) -> None:
        self.ask("DELETE FROM names WHERE name = ? AND run = ? AND session = ?", (name, place.run, place.session))

    @property
    def is_whole(self) -> bool:
        """Whether every name is in the index. Not after a restart of the machine: a power failure may lose the last entries."""
        is_filled = self._read_note(_WHOLE + _read_boot_id()) is not None
        return is_filled and not layout.find(self._folder, _EARLIER_WHOLE)

    def fill(self, names: Iterable[tuple[str, Place]], *, is_all: bool) -> None:
        """Add the missing names, and remove the files of earlier versions, which would not contain our names."""
        if self.ask("PRAGMA quick_check(1)") != [("ok",)]:
            raise IndexDamaged("The index of names is damaged. Try again.")
        for file in self._folder.names():
            if file.startswith(_EARLIER_FILES):
                self._folder.remove_file(file)
        with self.change():
            for name, place in names:
                self.ask("INSERT OR IGNORE INTO names VALUES (?, ?, ?)", (name, place.run, place.session))
            if is_all:
                self._write_note(_WHOLE + _read_boot_id(), b"")

    def recall(self) -> Measurement | None:
        found = self._read_note(_MEASURED)
        return None if found is None else lenient_json.parse(found, Measurement)

    def note(self, measured: Measurement) -> None:
        data = msgspec.json.encode(measured)
        self._write_note(_MEASURED, data if len(data) <= _MAX_NOTE_BYTES else b"")

    def add(self, changes: dict[str, int]) -> None:
        """Count what a process has written since it was measured."""
        with self.change():
            if measured := self.recall():
                families = Counter(measured.families)
                families.update(changes)
                self.note(replace(measured, families=dict(families)))

    def _read_note(self, kind: str) -> bytes | None:
        found = self.ask("SELECT content FROM notes WHERE kind = ?", (kind,))
        return bytes(found[0][0]) if found and isinstance(found[0][0], bytes) else None

    def _write_note(self, kind: str, content: bytes) -> None:
        self.ask("INSERT OR REPLACE INTO notes VALUES (?, ?)", (kind, content))


@contextmanager
def open_index(root: Directory, *, makes: bool = False, within: float = _MAX_WAIT_SECONDS) -> Generator[Index | None]:
    """The index, or None if it does not exist or if its path is taken: in /tmp, everyone may create any file. Raises
    IndexAway, or IndexDamaged after it has been replaced."""
    name = layout.hints_directory()
    with ExitStack() as opened:
        if makes:
            with suppress(FileExistsError):
                root.make_directory(name).close()
        if not layout.is_ours(root, name) or not find_spec("_sqlite3"):  # some builds of Python lack it
            yield None
            return
        folder = opened.enter_context(root.open_directory(name))
        if makes and not layout.find(folder, FILE):
            _connect(folder, within).close()
            os.chmod(FILE, 0o600, dir_fd=folder.fd)  # its journal gets the same mode
        if not layout.is_ours(folder, FILE) or not stat.S_ISREG(folder.stat(FILE).st_mode):
            yield None
            return
        try:
            yield opened.enter_context(closing(Index(folder, within)))
        except IndexDamaged:
            _replace(root, folder, within)
            raise


def forget(root: Directory, name: str = "", place: Place | None = None) -> None:
    """Remove the name of a removed session, and the index with the last name. If that fails, the name leads nowhere."""
    with suppress(OSError, StoreError), open_index(root) as index:
        if index is not None and place is not None:
            index.remove(name, place)
        if index is None or index.ask("SELECT name FROM names LIMIT 1"):
            return
        with index.change(), root.open_directory(layout.hints_directory()) as folder:
            if not index.ask("SELECT name FROM names LIMIT 1"):
                folder.remove_file(FILE)
    with suppress(OSError):
        root.remove_directory(layout.hints_directory())


def _replace(root: Directory, folder: Directory, within: float) -> None:
    """Replace the index, in one process at a time, if it is still damaged: another process may have replaced it already."""
    with suppress(OSError, IndexAway), lock.hold_alone(root, within=within):
        with suppress(IndexDamaged), closing(Index(folder, within)) as index:
            if index.ask("PRAGMA quick_check(1)") == [("ok",)]:
                return
        for file in (FILE + "-journal", FILE):
            with suppress(FileNotFoundError):
                folder.remove_file(file)


@cache
def _read_boot_id() -> str:
    """An id that changes each time this machine starts."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
    except OSError:
        return str(round((time.time() - time.monotonic()) / 10))


def _connect(folder: Directory, within: float) -> sqlite3.Connection:
    import sqlite3  # noqa: PLC0415  # takes longer than opening a session, and most sessions have no name

    with _explain():
        return sqlite3.connect(folder.path / FILE, timeout=within, isolation_level=None)


@contextmanager
def _explain() -> Generator[None]:
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith("sqlite3"):
            raise
        is_away = getattr(error, "sqlite_errorcode", _NOT_A_DATABASE) & 0xFF in _AWAY
        raise (IndexAway if is_away else IndexDamaged)(f"The index of names cannot be used: {error}. Try again.") from error
