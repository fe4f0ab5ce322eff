"""Connections to the database, with a limit on every wait, and its failures in our words."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import conninfo, errors, pq

from overspill.errors import OverspillError, SettingsError, StoreAway, StoreError, StoreFull
from overspill.store.postgres import sql
from overspill.text.urls import is_loopback, mask_password

_MAX_CONNECTIONS = 8
_CONNECT_SECONDS = 5
ANSWER_SECONDS = 30.0
"""The most that one statement may take."""
_REST_AFTER_FAILURE = 5  # the pause after a failed attempt, in multiples of how long it took
_MAX_REST_SECONDS = 30.0
_FULL = (errors.DiskFull, errors.OutOfMemory)
_SCHEMA_LOCK = 0x6F766572  # any number that other programs are unlikely to lock

Row: TypeAlias = tuple[Any, ...]
T = TypeVar("T")


class _Connection(psycopg.Connection[Row]):
    """A connection with a limit on waiting: a server that accepts a query and then stays silent would block us forever."""

    answer_seconds = ANSWER_SECONDS

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        return super().wait(gen, interval, self.answer_seconds if timeout is None else timeout)


class Database:
    """Used by many threads: each call has a separate connection."""

    def __init__(self, url: str, answer_seconds: float = ANSWER_SECONDS) -> None:
        self.url = mask_password(url)
        self._answer_seconds = answer_seconds
        self._parameters = _read_url(url, answer_seconds)
        self._failure: psycopg.Error | None = None
        self._no_attempt_before = 0.0
        self._free = BoundedSemaphore(_MAX_CONNECTIONS)
        self._mutex = Lock()
        self._is_ready = False
        self.has_index = False
        """Whether outputs can be indexed by their names. Known after the first call."""
        self._begin()

    def _begin(self) -> None:
        """Start without connections. In a forked child, existing ones belong to its parent."""
        self._idle: list[_Connection] = []
        self._pid = os.getpid()
        weakref.finalize(self, _close_all, self._idle, self._pid)

    def rows(self, doing: str, query: str, parameters: Mapping[str, object]) -> list[Row]:
        """The rows of one statement, in one round trip. It may run twice if the connection breaks, so it must be repeatable."""
        return self._use(doing, lambda connection: _fetch(connection, query, parameters))

    def transact(self, doing: str, work: Callable[[Fetch], T]) -> T:
        """Run several statements in one transaction. It may run twice if the connection breaks."""

        def run(connection: _Connection) -> T:
            with connection.transaction():
                return work(lambda query, parameters: _fetch(connection, query, parameters))

        return self._use(doing, run)

    def close(self) -> None:
        with self._mutex:
            _close_all(self._idle, self._pid)

    def _use(self, doing: str, work: Callable[[_Connection], T]) -> T:
        with self._explain(doing):
            if not self._free.acquire(timeout=self._answer_seconds):
                raise StoreAway(f"Could not {doing}: all connections to {self.url} are in use. Try again.")
            try:
                started = time.monotonic()
                with self._mutex:
                    if self._pid != os.getpid():
                        self._begin()
                    connection = self._idle.pop() if self._idle else None
                if connection is not None:
                    try:
                        return self._finish(connection, work)
                    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                        if not connection.closed:
                            raise
                        self.close()  # the server was restarted: the other idle connections are dead too
                        if time.monotonic() - started >= self._answer_seconds:
                            self._rest(error, started)
                            raise
                return self._finish(self._connect(), work)
            finally:
                self._free.release()

    def _finish(self, connection: _Connection, work: Callable[[_Connection], T]) -> T:
        try:
            return work(connection)
        except BaseException as error:
            # A connection with an unfinished query cannot be used again. A refusal by the server leaves it usable.
            if isinstance(error, psycopg.OperationalError) or not isinstance(error, psycopg.Error | OverspillError):
                connection.close()
            raise
        finally:
            with self._mutex:
                if not connection.closed:
                    self._idle.append(connection)

    def _connect(self) -> _Connection:
        if self._failure is not None and time.monotonic() < self._no_attempt_before:
            raise self._failure
        started = time.monotonic()
        try:
            connection = _Connection.connect(**self._parameters, autocommit=True)
        except psycopg.Error as error:
            self._rest(error, started)
            raise
        self._failure = None
        connection.answer_seconds = self._answer_seconds
        try:
            if not self._is_ready:
                self.has_index = _make_tables(connection)
                self._is_ready = True
        except BaseException:
            connection.close()
            raise
        return connection

    def _rest(self, error: psycopg.Error, started: float) -> None:
        now = time.monotonic()
        self._failure = error
        self._no_attempt_before = now + min((now - started) * _REST_AFTER_FAILURE, _MAX_REST_SECONDS)

    @contextmanager
    def _explain(self, doing: str) -> Generator[None]:
        try:
            yield
        except _FULL as error:
            raise StoreFull(
                f"Could not {doing}: {self.url} has no space left. What was stored before is still there; make room there."
            ) from error
        except psycopg.OperationalError as error:
            raise StoreAway(
                f"Could not {doing}: {self.url} does not answer ({self._first_line(error)}). Nothing that was stored is lost. "
                "Try again; if this persists, check that the database is running, and that `store` names the right one."
            ) from error
        except psycopg.Error as error:
            raise StoreError(f"Could not {doing}: {self.url} refused it ({self._first_line(error)}).") from error

    def _first_line(self, error: psycopg.Error) -> str:
        """The first line of an error. Leaves out the details, which may quote the data to be stored."""
        text = error.diag.message_primary or next(iter(str(error).splitlines()), "") or "no reason given"
        password = str(self._parameters.get("password") or "")
        return text.replace(password, "***") if password else text


def _close_all(connections: list[_Connection], pid: int) -> None:
    while connections:
        connection = connections.pop()
        if pid == os.getpid():  # in a forked child, closing it would end it for the parent too
            connection.close()


Fetch: TypeAlias = Callable[[str, Mapping[str, object]], list[Row]]


def _fetch(connection: _Connection, query: str, parameters: Mapping[str, object]) -> list[Row]:
    with connection.cursor(binary=True) as cursor:
        cursor.execute(query, parameters)  # pyright: ignore[reportArgumentType]
        # `description` would show the same, but makes an object for each column first.
        return cursor.fetchall() if cursor.rownumber is not None else []


def _make_tables(connection: _Connection) -> bool:
    """Whether an index of names exists. A user who may not create tables works without it if the database lacks one."""
    try:
        found, has_index = _fetch(connection, sql.FIND_VERSION, {})[0]
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        _create(connection, sql.CREATE_TABLES)
        return True
    if found != sql.VERSION:
        raise StoreError(
            f"its tables have version {found}, and this Overspill works with version {sql.VERSION}. Use the version of "
            "Overspill that made them, or another database."
        )
    if not has_index:
        try:
            _create(connection, sql.CREATE_INDEX)
        except errors.InsufficientPrivilege:
            return False
    return True


def _create(connection: _Connection, script: str) -> None:
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_SCHEMA_LOCK])
        connection.execute(script)  # pyright: ignore[reportArgumentType, reportCallIssue]


def _read_url(url: str, answer_seconds: float) -> dict[str, Any]:
    try:
        given = conninfo.conninfo_to_dict(url)
        account = url.partition("?")[0].partition("://")[2].rpartition("@")[0]
        if ":" in account and not {*"@/"}.isdisjoint(account):  # the library would mistake part of a password for a host
            raise ValueError
    except (psycopg.Error, ValueError, UnicodeError):  # the library's message quotes the URL, with its password
        raise SettingsError(
            f"{mask_password(url)!r} is not a usable PostgreSQL URL. Write postgresql://user@host:port/database, with special "
            "characters percent-encoded. The password may be in the variable PGPASSWORD or in your .pgpass file."
        ) from None
    usual: dict[str, Any] = {
        "connect_timeout": _CONNECT_SECONDS,
        "tcp_user_timeout": 1000 * _CONNECT_SECONDS,
        "application_name": "overspill",
        "options": f"-c statement_timeout={int(1000 * answer_seconds)} -c lock_timeout={1000 * _CONNECT_SECONDS}",
    }
    defaults = {option.keyword: option for option in pq.Conninfo.get_defaults()}  # with what the environment says
    hosts = str(given.get("host") or (defaults[b"host"].val or b"").decode()).split(",")
    is_local = all(not host or host.startswith(("/", "@")) or host == "localhost" or is_loopback(host) for host in hosts)
    if not is_local and defaults[b"sslmode"].val == defaults[b"sslmode"].compiled:
        # The library would silently fall back to sending everything unencrypted.
        usual["sslmode"] = "require"
    return usual | given
