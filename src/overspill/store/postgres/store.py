"""Store outputs in a PostgreSQL database, which many processes on many machines share."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from overspill.errors import BadRequest, UnknownHandle
from overspill.store import keep, rules
from overspill.store.keep import DAY, KeptItem, Opening
from overspill.store.postgres import sql
from overspill.store.postgres.database import ANSWER_SECONDS, Database, Fetch
from overspill.store.postgres.run import Run
from overspill.store.postgres.shelf import PostgresShelf
from overspill.store.protocols import Expired, KeepLimits, Retention, ShelfLabel
from overspill.store.quota import GIB, HOUR, KeepGuard
from overspill.store.shared.lease import LEASE_SECONDS, REMOVE_AFTER_SECONDS
from overspill.store.shared.open_sessions import OpenSessions
from overspill.text import encoding

_MOST_AT_ONCE = 10_000
"""Sessions and outputs that one call removes of each. The next one continues."""


class KeptRows:
    """Only what is older than one of the limits can be removed, so that the rest is not looked at."""

    def __init__(self, database: Database, key: Mapping[str, object], limits: KeepLimits) -> None:
        self._database = database
        self._doing = f"apply the keep limits in {database.url}"
        database.rows(self._doing, sql.REMOVE_UNFINISHED, key)
        measured = database.rows(self._doing, sql.KEPT_BYTES, key)
        self.now: float = measured[0][0] if measured else 0.0
        self.bytes: dict[str, int] = {family: size for _, family, size in measured}
        is_too_much = max(self.bytes.values(), default=0) > limits.bytes
        self._values = {**key, "unused": min(limits.days, 1 if is_too_much else limits.days) * DAY, "most": _MOST_AT_ONCE}
        sessions, outputs = (
            database.rows(self._doing, statement, self._values) if measured else []
            for statement in (sql.OLD_SESSIONS, sql.OLD_OUTPUTS)
        )
        self.items = [KeptItem(str(session), "", *rest) for session, *rest in sessions]
        self.items += [KeptItem(str(session), str(id), *rest) for session, id, *rest in outputs]
        self.emptied: set[str] = set()
        """Live sessions that have lost outputs."""

    def remove(self, item: KeptItem) -> bool:
        statement = sql.EXPIRE_OUTPUT if item.id else sql.EXPIRE_SESSION
        is_removed = bool(self._database.rows(self._doing, statement, {**self._values, "session": item.session, "id": item.id}))
        if is_removed and item.id:
            self.emptied.add(item.session)
        return is_removed


_SECONDS_BETWEEN_MEASUREMENTS = 60.0  # of all that is kept, which takes longer the more there is


class PostgresStore:
    """`tenant` separates users of one database: a store reads, counts and removes only what was stored with the same one.

    Nothing is asked of the server before the first call. `close`, or the end of the process, removes what is not to be kept.
    """

    def __init__(
        self,
        url: str,
        *,
        tenant: str = "",
        run_bytes: int = 10 * GIB,
        sweep_seconds: float = HOUR,
        lease_seconds: float = LEASE_SECONDS,
        remove_after_seconds: float = REMOVE_AFTER_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        if "\0" in tenant or encoding.clean(tenant) != tenant:
            raise BadRequest(f"{tenant[:50]!r} cannot name a tenant: PostgreSQL stores neither NUL nor lone surrogates.")
        self._database = Database(url, answer_seconds)
        self._tenant = tenant
        self._lease_seconds = lease_seconds
        self._remove_after_seconds = remove_after_seconds
        guard = KeepGuard(self.expire, sweep_seconds=sweep_seconds, rest_seconds=_SECONDS_BETWEEN_MEASUREMENTS)
        self._open = OpenSessions(self._start_run, self._finish_run, guard=guard, run_bytes=run_bytes)
        self._emptied: set[str] = set()

    @property
    def url(self) -> str:
        return self._database.url

    def open_shelf(
        self, session: str, *, name: str = "", retention: Retention = "session", limits: KeepLimits | None = None
    ) -> PostgresShelf:
        rules.check_id(session)
        rules.check_name(name)
        run = self._open.run
        hold = str(uuid.uuid4())
        values = self._key(
            session=session,
            name=name,
            retention=retention,
            opening=Opening.now(session, name, retention).line,
            run=run.id,
            hold=hold,
        )
        may_exist = bool(name) and not rules.is_unique(name, session)
        opened, kind = self._database.transact(
            f"open a session in {self.url}", lambda fetch: _open(fetch, values, may_exist=may_exist)
        )
        held = self._open.hold(opened, hold, run, kind, limits, keep.family_of(name))
        return self._open.add(held, PostgresShelf(self._database, opened, self._open.copies, held))

    def read_shelf(self, session: str) -> PostgresShelf:
        self.label(session)
        return PostgresShelf(self._database, session, self._open.copies)

    def label(self, session: str) -> ShelfLabel:
        rules.check_id(session)
        for row in self._database.rows(f"read session {session}", sql.LABEL, self._key(session=session)):
            return _label(row)
        raise UnknownHandle(f"session-{session}")

    def shelves(self, *, family: str = "", after: str = "", most: int | None = None) -> list[ShelfLabel]:
        key = self._key(family=family, after=after or None, most=most)
        rows = self._database.rows(f"list {self.url}", sql.LABELS_OF_FAMILY if family else sql.LABELS, key)
        return [_label(row) for row in rows]

    def find_recorded(self, ending: str) -> list[tuple[str, bytes]]:
        rows = self._database.rows(f"search {self.url}", sql.FIND_RECORDED, self._key(ending=ending))
        return [(str(session), bytes(line)) for session, line in rows]

    def remove_shelf(self, session: str) -> None:
        rules.check_id(session)
        if not self._database.rows(f"remove session {session}", sql.REMOVE_SESSION, self._key(session=session)):
            self.label(session)
            raise rules.still_live_error(session)
        self._open.quota.release(session)

    def empty_shelf(self, session: str) -> int:
        self.label(session)
        removed = self._database.rows(f"empty session {session}", sql.EMPTY, {"session": session})
        self._emptied.add(session)
        for (id,) in removed:
            self._open.quota.release(session, str(id))
        return len(removed)

    def expire(self, limits: KeepLimits, *, family: str | None = None) -> Expired:
        content = KeptRows(self._database, self._key(), limits)
        expired = keep.expire(content.items, content.bytes, content.remove, limits, now=content.now, family=family)
        self._emptied |= content.emptied
        self._open.release_gone(self._find_stored)
        return expired

    def free(self) -> int:
        return self._open.quota.left

    def close(self) -> None:
        try:
            self._open.close()
        finally:
            self._database.close()

    def _start_run(self) -> Run:
        return Run(self._database, self._lease_seconds, self._remove_after_seconds)

    def _finish_run(self, run: Run) -> None:
        doing = f"close {self.url}"
        self._database.rows(doing, sql.REMOVE_OF_RUN, {"run": run.id})
        if self._emptied:
            emptied, self._emptied = list(self._emptied), set()
            self._database.rows(doing, sql.PURGE, {"sessions": emptied})
        run.remove()

    def _find_stored(self, held: Mapping[str, object]) -> set[tuple[str, str]]:
        rows = self._database.rows(f"measure {self.url}", sql.STILL_STORED, {"sessions": list(held)})
        return {(str(session), str(id)) for session, id in rows}

    def _key(self, **values: object) -> dict[str, object]:
        return {"tenant": self._tenant, "lease": self._lease_seconds, **values}


def _open(fetch: Fetch, values: Mapping[str, Any], *, may_exist: bool) -> tuple[str, Retention]:
    if may_exist:
        fetch(sql.LOCK_NAME, values)
        if session := keep.choose_named(values["name"], map(_label, fetch(sql.FIND_NAME, values))):
            fetch(sql.DROP_DEAD_HOLDS, of_session := {**values, "session": session})
            fetch(sql.TAKE, of_session)
            return session, "keep"
    if not fetch(sql.CREATE, values):
        raise rules.already_exists_error(f"session-{values['session']}")
    return values["session"], values["retention"]


def _label(row: tuple[Any, ...]) -> ShelfLabel:
    session, is_live, name, retention = row
    return ShelfLabel(str(session), live=is_live, name=name, retention=retention)
