"""What a database keeps, as the keep limits look at it. The server decides each removal, so several workers may do it at once."""

from __future__ import annotations

from collections.abc import Mapping

from overspill.store.keep import DAY, KeptItem
from overspill.store.postgres import sql
from overspill.store.postgres.database import Database
from overspill.store.protocols import KeepLimits

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
