"""Store outputs in a PostgreSQL database, which many processes on many machines share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from overspill.errors import BadRequest, UnknownHandle
from overspill.store import keep, rules
from overspill.store.keep import DAY, KeptItem, Opening
from overspill.store.postgres import sql
from overspill.store.postgres.database import ANSWER_SECONDS, Database, Fetch
from overspill.store.postgres.shelf import PostgresShelf
from overspill.store.protocols import Expired, KeepLimits, Retention, ShelfLabel
from overspill.store.shared.shelf import Hold
from overspill.store.shared.store import READABLE_AFTER_REMOVAL_SECONDS, Lease, SharedOptions, SharedStore
from overspill.text import encoding

_MOST_AT_ONCE = 10_000
"""The most sessions and the most outputs that one call removes. The next call continues."""


class DatabaseLease(Lease):
    def __init__(self, database: Database, seconds: float, remove_after_seconds: float) -> None:
        super().__init__(seconds)
        self._database = database
        self._key = {"run": self.id, "lease": seconds}
        self._times = {"remove_after": remove_after_seconds, "readable": READABLE_AFTER_REMOVAL_SECONDS}
        database.rows("begin to use the store", sql.START, self._key)
        self._sweep()
        self.start_renewing()

    def renew(self) -> bool:
        is_renewed = bool(self._database.rows("renew a lease", sql.RENEW, self._key))
        if is_renewed:
            self._sweep()
        return is_renewed

    def _sweep(self) -> None:
        self._database.rows("remove what dead processes left", sql.SWEEP, self._times)


class PostgresStore(SharedStore[DatabaseLease, PostgresShelf]):
    """`tenant` separates users of one database: a store reads, counts and removes only what was stored with the same one."""

    seconds_between_measurements = 60.0  # measuring takes longer with more data

    def __init__(
        self, url: str, *, tenant: str = "", answer_seconds: float = ANSWER_SECONDS, **given: Unpack[SharedOptions]
    ) -> None:
        if "\0" in tenant or encoding.clean(tenant) != tenant:
            raise BadRequest(f"{tenant[:50]!r} cannot name a tenant: PostgreSQL stores neither NUL nor lone surrogates.")
        super().__init__(**given)
        self._database = Database(url, answer_seconds)
        self._tenant = tenant
        self._emptied: set[str] = set()
        """Sessions that have lost outputs, whose bytes go when this process ends."""

    @property
    def url(self) -> str:
        return self._database.url

    def read_shelf(self, session: str) -> PostgresShelf:
        self.label(session)
        return PostgresShelf(self._database, session, self._copies)

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
        self._quota.release(session)

    def empty_shelf(self, session: str) -> int:
        self.label(session)
        removed = self._database.rows(f"empty session {session}", sql.EMPTY, {"session": session})
        self._emptied.add(session)
        for (id,) in removed:
            self._quota.release(session, str(id))
        return len(removed)

    def expire(self, limits: KeepLimits, *, family: str | None = None) -> Expired:
        """Reads only what is older than one of the limits, because nothing else can be removed."""
        doing, key = f"apply the keep limits in {self.url}", self._key()
        self._database.rows(doing, sql.REMOVE_UNFINISHED, key)
        measured = self._database.rows(doing, sql.KEPT_BYTES, key)
        kept = {each: size for _, each, size in measured}
        is_too_much = max(kept.values(), default=0) > limits.bytes
        key |= {"unused": min(limits.days, 1 if is_too_much else limits.days) * DAY, "most": _MOST_AT_ONCE}

        def remove(item: KeptItem) -> bool:
            statement = sql.EXPIRE_OUTPUT if item.id else sql.EXPIRE_SESSION
            return bool(self._database.rows(doing, statement, {**key, "session": item.session, "id": item.id}))

        old = [row for each in (sql.OLD_SESSIONS, sql.OLD_OUTPUTS) if measured for row in self._database.rows(doing, each, key)]
        items = [KeptItem(str(session), str(id or ""), *rest) for session, id, *rest in old]
        expired = keep.expire(items, kept, remove, limits, now=measured[0][0] if measured else 0.0, family=family)
        self._emptied |= {item.session for item in items if item.id in expired.outputs}
        self._release_gone()
        return expired

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._database.close()

    def _start_run(self) -> DatabaseLease:
        return DatabaseLease(self._database, self._lease_seconds, self._remove_after_seconds)

    def _finish_run(self, run: DatabaseLease) -> None:
        doing, key = f"close {self.url}", {"run": run.id}
        self._database.rows(doing, sql.REMOVE_OF_RUN, key)
        if self._emptied:
            emptied, self._emptied = list(self._emptied), set()
            self._database.rows(doing, sql.PURGE, {"sessions": emptied})
        self._database.rows(doing, sql.END, key)

    def _begin(self, opening: Opening, run: DatabaseLease, hold: str, limits: KeepLimits | None) -> tuple[str, Retention]:
        name, session = opening.name, opening.session
        values = self._key(session=session, name=name, retention=opening.retention, opening=opening.line, run=run.id, hold=hold)

        def begin(fetch: Fetch) -> tuple[str, Retention]:
            if name and not rules.is_unique(name, session):
                fetch(sql.LOCK_NAME, values)
                if kept := keep.choose_named(name, map(_label, fetch(sql.FIND_NAME, values))):
                    fetch(sql.DROP_DEAD_HOLDS, of_kept := {**values, "session": kept})
                    fetch(sql.TAKE, of_kept)
                    return kept, "keep"
            if not fetch(sql.CREATE, values):
                raise rules.already_exists_error(f"session-{session}")
            return session, opening.retention

        return self._database.transact(f"open a session in {self.url}", begin)

    def _make_shelf(self, session: str, name: str, hold: Hold, run: DatabaseLease) -> PostgresShelf:
        return PostgresShelf(self._database, session, self._copies, hold)

    def _find_stored(self, held: Mapping[str, set[str]]) -> set[tuple[str, str]]:
        rows = self._database.rows(f"measure {self.url}", sql.STILL_STORED, {"sessions": list(held)})
        return {(str(session), str(id)) for session, id in rows}

    def _key(self, **values: object) -> dict[str, object]:
        return {"tenant": self._tenant, "lease": self._lease_seconds, **values}


def _label(row: tuple[Any, ...]) -> ShelfLabel:
    session, is_live, name, retention = row
    return ShelfLabel(str(session), live=is_live, name=name, retention=retention)
