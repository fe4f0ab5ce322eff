"""The loaded tables of a session, and queries over them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, RLock
from types import TracebackType
from typing import TypeVar

import msgspec
from msgspec import Struct

from overspill.confined.worker import Worker
from overspill.errors import BadRequest, MissingPackage, SessionClosed
from overspill.sql.protocol import Database, Loaded, LoadRequest, QueryRequest, Result
from overspill.store.protocols import Reader

MAX_MEMORY_BYTES = 320 << 20
"""What DuckDB may use in each process, apart from the interpreter."""
MAX_DISK_BYTES = 8 << 30
"""The largest file that a process may write, and what a query may spill."""
MAX_RESULT_BYTES = 64 << 20
"""Of a result that is written down whole. The rows beyond are only counted."""
MAX_LOADED_BYTES = 16 << 30
"""Loaded tables of one session. Those used longest ago are loaded again when they are needed."""
LOAD_SECONDS = 120
MAX_PROCESSES = 2
MAX_SQL_CHARS = 100_000
_BLOCK_BYTES = 1 << 20
_FOLDER = Path(__file__).parent

_loader = Worker(_FOLDER / "load_worker.py", max_running=MAX_PROCESSES, max_seconds=LOAD_SECONDS)
_querier = Worker(_FOLDER / "query_worker.py", max_running=MAX_PROCESSES, max_seconds=10.0)

A = TypeVar("A", bound=Struct)


class Source(Struct, frozen=True):
    """A text with tables. `key` is the same for the same bytes."""

    key: str
    reader: Reader
    kind: str = ""
    """What it is, if its name says so."""
    label: str = "the output"
    file: Path | None = None
    """A file with exactly this text, if there is one."""


class QueryResult(Struct, frozen=True):
    """`lines` has a line of JSON for each row, as far as they were written."""

    result: Result
    lines: bytes
    notes: tuple[str, ...] = ()


def is_installed() -> bool:
    return find_spec("duckdb") is not None


class SqlLibrary:
    """Blocks: call it in a thread. Several threads may use it at the same time."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._loading: dict[str, Lock] = {}
        self._loaded: dict[str, Loaded] = {}
        self._root: Path | None = None
        self._is_closed = False

    def __enter__(self) -> SqlLibrary:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._is_closed, root, self._root = True, self._root, None
            self._loaded.clear()
        if root is not None:
            shutil.rmtree(root, ignore_errors=True)

    def load(self, source: Source) -> Loaded:
        """The tables in a source. Loads them if they are not loaded yet."""
        if not is_installed():
            raise MissingPackage("SQL", "sql")
        with self._lock:
            loading = self._loading.setdefault(source.key, Lock())
        try:
            with loading:
                found = self._find(source.key) or self._load(source)
        finally:
            with self._lock:
                self._loading.pop(source.key, None)
        return found

    def query(self, sql: str, sources: Mapping[str, Source], seconds: float) -> QueryResult:
        """`sources` are named as the query names them: `NAME` and `NAME_…` are the tables of each."""
        if len(sql) > MAX_SQL_CHARS:
            raise BadRequest(f"The statement has {len(sql):,} characters. The most is {MAX_SQL_CHARS:,}.")
        loaded = {name: self.load(source) for name, source in sources.items()}
        databases = [
            Database(str(self._file(sources[name].key)), {rename(table.name, name): table.name for table in found.tables})
            for name, found in loaded.items()
            if found.tables
        ]
        with tempfile.TemporaryDirectory(prefix="query-", dir=self._folder()) as folder:
            request = QueryRequest(
                sql, tuple(databases), folder, MAX_MEMORY_BYTES, MAX_DISK_BYTES, MAX_RESULT_BYTES, _processor_seconds(seconds)
            )
            late = f"The query took longer than {seconds:g} seconds, or more memory than it may use."
            result = _run(_querier, request, Result, seconds, late)
            file = Path(folder, "result")
            lines = file.read_bytes() if file.exists() and not result.failed else b""
        return QueryResult(result, lines, tuple(_describe_gaps(loaded)))

    def files(self) -> list[Path]:
        """The databases of what is loaded."""
        with self._lock:
            return [self._file(key) for key in self._loaded]

    def _find(self, key: str) -> Loaded | None:
        with self._lock:
            found = self._loaded.pop(key, None)
            if found is not None:
                self._loaded[key] = found  # used last
        return found

    def _load(self, source: Source) -> Loaded:
        database = self._file(source.key)
        database.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix="load-", dir=self._folder()) as folder:
            text = source.file or _copy(source.reader, Path(folder, "text"))
            request = LoadRequest(
                str(text.absolute()),
                folder,
                str(database),
                MAX_MEMORY_BYTES,
                MAX_DISK_BYTES,
                _processor_seconds(LOAD_SECONDS),
                source.kind,
            )
            late = f"{source.label} could not be loaded within {LOAD_SECONDS} seconds and {MAX_MEMORY_BYTES >> 20} MB of memory."
            found = _run(_loader, request, Loaded, LOAD_SECONDS, late)
        if found.failed:
            raise BadRequest(f"The tables in {source.label} could not be read: {found.failed}")
        with self._lock:
            self._loaded[source.key] = found
            self._make_room()
        return found

    def _make_room(self) -> None:
        sizes = {key: self._file(key).stat().st_size for key in self._loaded if self._file(key).exists()}
        for key in list(sizes)[:-1]:
            if sum(sizes.values()) <= MAX_LOADED_BYTES:
                return
            del sizes[key], self._loaded[key]
            self._file(key).unlink(missing_ok=True)

    def _file(self, key: str) -> Path:
        return self._folder() / f"{key}.db"

    def _folder(self) -> Path:
        with self._lock:
            if self._is_closed:
                raise SessionClosed("The session was closed while a query ran.")
            if self._root is None:
                self._root = Path(tempfile.mkdtemp(prefix="overspill-sql-"))
            return self._root


def rename(table: str, name: str) -> str:
    """The tables of an output that a query calls `orders`: `orders` for `output`, `orders_2` for `output_2`."""
    return name + table.removeprefix("output")


def _processor_seconds(seconds: float) -> int:
    """DuckDB works in two threads."""
    return 2 * (int(seconds) + 1)


def _copy(reader: Reader, target: Path) -> Path:
    with target.open("wb") as file:
        for start in range(0, reader.size, _BLOCK_BYTES):
            file.write(reader.read(start, start + _BLOCK_BYTES))
    return target


def _run(worker: Worker, request: Struct, kind: type[A], seconds: float, late: str) -> A:
    try:
        finished = worker.run(msgspec.json.encode(request), seconds)
    except OSError as error:
        raise BadRequest(f"The process that runs SQL did not start: {error.strerror}.") from None
    if not finished.is_complete or not finished.output:
        raise BadRequest(late)
    return msgspec.json.decode(finished.output, type=kind)


def _describe_gaps(loaded: Mapping[str, Loaded]) -> list[str]:
    """What a query does not see."""
    notes: list[str] = []
    for name, found in loaded.items():
        for table in found.tables:
            shown = rename(table.name, name)
            if table.bad_rows:
                notes.append(f"{table.bad_rows:,} rows of {shown} could not be read and are missing.")
            if table.note:
                notes.append(f"{shown}: {table.note}")
    return notes
