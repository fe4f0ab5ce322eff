"""What the keep limits remove from a database. The server decides each removal, so several workers may do it at once."""

from __future__ import annotations

from collections.abc import Mapping

from overspill.store import rules
from overspill.store.postgres import sql
from overspill.store.postgres.database import Database
from overspill.store.protocols import Expired, KeepLimits
from overspill.store.rules import DAY, KeptItem

_MOST_AT_ONCE = 10_000
"""Sessions and outputs that one call removes of each. The next one continues."""


def expire(
    database: Database, key: Mapping[str, object], limits: KeepLimits, family: str | None = None
) -> tuple[Expired, set[str]]:
    """Also returns the live sessions that have lost outputs."""
    doing = f"apply the keep limits in {database.url}"
    database.rows(doing, sql.REMOVE_UNFINISHED, key)
    measured = database.rows(doing, sql.KEPT_BYTES, key)
    if not measured:
        return Expired([], [], 0), set()
    now, kept_bytes = measured[0][0], {each: size for _, each, size in measured}
    # Only what is older than one of the limits can be removed, so that the rest need not be looked at.
    age = min(limits.days * DAY, DAY) if max(kept_bytes.values()) > limits.bytes else limits.days * DAY
    values = {**key, "unused": age, "most": _MOST_AT_ONCE}
    items = [KeptItem(str(s), "", used, size, f) for s, used, size, f in database.rows(doing, sql.OLD_SESSIONS, values)]
    outputs = database.rows(doing, sql.OLD_OUTPUTS, values)
    items += [KeptItem(str(s), str(id), used, size, f) for s, id, used, size, f in outputs]
    removed: list[KeptItem] = []
    for item in rules.expired_items(items, kept_bytes, limits, now=now, family=family):
        statement = sql.EXPIRE_OUTPUT if item.id else sql.EXPIRE_SESSION
        if database.rows(doing, statement, {**values, "session": item.session, "id": item.id}):
            removed.append(item)
    return rules.describe_expired(removed, kept_bytes), {item.session for item in removed if item.id}
