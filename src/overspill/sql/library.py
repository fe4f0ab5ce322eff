"""The loaded tables of a session, and queries over them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, RLock
from types import TracebackType

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from overspill.confined.worker import Processes, Worker
from overspill.errors import BadRequest, MissingPackage, SessionClosed
from overspill.sql.protocol import (
    LOAD_SECONDS,
    MAX_MEMORY_BYTES,
    LoadedTables,
    LoadRequest,
    QueryRequest,
    SqlDatabase,
    SqlResult,
    rename,
)
from overspill.store.files.scratch import ScratchFolder
from overspill.store.protocols import Reader
from overspill.store.readers import read_blocks
from overspill.text.humanize import count_noun
from overspill.text.lenient_json import ready
from overspill.text.regex import regex

MAX_LOADED_BYTES = 16 << 30
"""The loaded tables of one session. The least recently used ones are dropped, and loaded again when needed."""
MAX_PROCESSES = 2
MAX_QUERIED_AT_ONCE_BYTES = 128 << 20
"""Up to this size, the process that loads the text also queries it. With more text, the query would lack memory."""
MAX_SQL_CHARS = 100_000
_NOT_TEXT = regex("[\0\ud800-\udfff]")
"""Characters at which DuckDB would end the statement, or that cannot be passed to it."""
_SCRIPT = Path(__file__).with_name("worker.py")

_loader = Worker(_SCRIPT, "load", max_running=MAX_PROCESSES, max_seconds=LOAD_SECONDS, max_each=1)
_querier = Worker(_SCRIPT, "query", max_running=MAX_PROCESSES, max_seconds=10.0)
_ENDED = "ended without an answer: it was killed, or it failed. There may be too little memory. Ask again, or ask for less."


class Source(Struct, frozen=True):
    """Text that contains tables. Equal bytes have an equal `key`."""

    key: str
    reader: Reader
    kind: str = ""
    """The kind of text, if the name of the source shows it."""
    label: str = "the output"
    file: Path | None = None
    """A file with exactly this text, if one exists."""


class QueryResult(Struct, frozen=True):
    """`lines` has a line of JSON for each row that was written. `loaded` has the tables found in each source."""

    result: SqlResult
    lines: bytes
    loaded: Mapping[str, LoadedTables]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on data that the query did not see."""
        notes: list[str] = []
        for name, found in self.loaded.items():
            for table in found.tables:
                shown = rename(table.name, name)
                if table.bad_rows:
                    notes.append(f"Left out {count_noun(table.bad_rows, 'row')} of {shown} that could not be read.")
                if table.note:
                    notes.append(f"{shown}: {table.note}")
        return tuple(notes)


def is_installed() -> bool:
    return find_spec("duckdb") is not None


class SqlLibrary:
    """Loads and queries tables. The methods block: call them in a thread. Several threads may use it at the same time."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._loading: dict[str, Lock] = {}
        self._loaded: dict[str, LoadedTables] = {}
        self._root: ScratchFolder | None = None
        self._processes = Processes()

    def __enter__(self) -> SqlLibrary:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends everything that still runs in other threads."""
        self._processes.end()
        with self._lock:
            root, self._root = self._root, None
            self._loaded.clear()
        if root is not None:
            root.remove()

    def load(self, source: Source, query: QueryRequest | None = None, name: str = "") -> tuple[LoadedTables, SqlResult | None]:
        """The tables in a source, which are loaded on first use. The process that loads them also answers a query."""
        if not is_installed():
            raise MissingPackage("SQL", "sql")
        with self._lock:
            loading = self._loading.setdefault(source.key, Lock())
        with loading:
            loaded = self._find(source.key)
            return (loaded, None) if loaded else self._load(source, query, name)

    def query(self, sql: str, sources: Mapping[str, Source], seconds: float) -> QueryResult:
        """`sources` have the names used in the query: `NAME` and `NAME_…` are the tables of each."""
        if len(sql) > MAX_SQL_CHARS:
            raise BadRequest(f"The statement has {len(sql):,} characters. The limit is {MAX_SQL_CHARS:,}.")
        if unusable := _NOT_TEXT.search(sql):
            raise BadRequest(f"The statement cannot be used: {unusable[0]!a} is not a valid character. Leave it out.")
        loaded = {name: found for name, source in sources.items() if (found := self._find(source.key))}
        *first, last = [name for name in sources if name not in loaded] or [""]
        loaded |= {name: self.load(sources[name])[0] for name in first}
        with tempfile.TemporaryDirectory(prefix="query-", dir=self.folder()) as folder:
            request = QueryRequest(sql, self._databases(loaded, sources), folder, seconds)
            result = None
            if last:
                at_once = request if sources[last].reader.size <= MAX_QUERIED_AT_ONCE_BYTES else None
                loaded[last], result = self.load(sources[last], at_once, last)
                request = replace(request, databases=self._databases(loaded, sources))
            if result is None:
                result = _read_result(*self._run(_querier, request, seconds), seconds)
            file = Path(folder, "result")
            lines = file.read_bytes() if file.exists() and not result.failed else b""
        return QueryResult(result, lines, {name: loaded[name] for name in sources})

    def _databases(self, loaded: Mapping[str, LoadedTables], sources: Mapping[str, Source]) -> tuple[SqlDatabase, ...]:
        files = {name: str(self._file(sources[name].key)) for name in loaded}
        return tuple(SqlDatabase.of(found, files[name], name) for name, found in loaded.items() if found.tables)

    def _find(self, key: str) -> LoadedTables | None:
        with self._lock:
            found = self._loaded.pop(key, None)
            if found is not None:
                self._loaded[key] = found  # now the most recently used
        return found

    def _load(self, source: Source, query: QueryRequest | None, name: str) -> tuple[LoadedTables, SqlResult | None]:
        database = self._file(source.key)
        database.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix="load-", dir=self.folder()) as folder:
            text = source.file or Path(folder, "text")
            if not source.file:
                with text.open("wb") as file:
                    file.writelines(read_blocks(source.reader))
            request = LoadRequest(str(text.absolute()), folder, str(database), source.kind, query, name)
            lines, is_late = self._run(_loader, request, LOAD_SECONDS + (query.seconds if query else 0))
        if not lines:
            late = f"{source.label} could not be loaded within {LOAD_SECONDS} seconds and {MAX_MEMORY_BYTES >> 20} MB of memory."
            raise BadRequest(late if is_late else f"The process that loads {source.label} {_ENDED}")
        found = msgspec.json.decode(lines[0], type=ready(LoadedTables))
        if found.failed:
            raise BadRequest(f"The tables in {source.label} could not be read: {found.failed}")
        with self._lock:
            self._loaded[source.key] = found
            sizes = {key: self._file(key).stat().st_size for key in self._loaded if self._file(key).exists()}
            for key in list(sizes)[:-1]:
                if sum(sizes.values()) > MAX_LOADED_BYTES:
                    del sizes[key], self._loaded[key]
                    self._file(key).unlink(missing_ok=True)
        if query is None or not found.tables:
            return found, None
        return found, _read_result(lines[1:], is_late, query.seconds)

    def _run(self, worker: Worker, request: Struct, seconds: float) -> tuple[list[bytes], bool]:
        """The answers of the process, and whether it ran out of time."""
        try:
            done = worker.run(msgspec.json.encode(request), seconds, self._processes)
        except OSError as error:
            raise BadRequest(f"The process that runs SQL did not start: {error.strerror}.") from None
        self._check()
        return done.output.split(b"\n")[:-1], done.is_late

    def _check(self) -> None:
        if self._processes.are_ended:
            raise SessionClosed("The session was closed while a query ran.")

    def _file(self, key: str) -> Path:
        return self.folder() / f"{key}.db"

    def folder(self) -> Path:
        with self._lock:
            self._check()
            if self._root is None:
                self._root = ScratchFolder("overspill-sql-")
            return self._root.path


def _read_result(lines: list[bytes], is_late: bool, seconds: float) -> SqlResult:
    if lines:
        return msgspec.json.decode(lines[0], type=ready(SqlResult))
    late = f"The query took longer than {seconds:g} seconds, or more memory than it may use."
    raise BadRequest(late if is_late else f"The process that runs the query {_ENDED}")
