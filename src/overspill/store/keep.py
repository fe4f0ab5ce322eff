"""What every kind of store has in common: how a session begins, whose it is, which one a name means, and what gets removed.

Each kind lists what it keeps (`KeptItem`) in its own way. The decisions about that are made here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from overspill.store import rules
from overspill.store.protocols import Expired, KeepLimits, Retention, ShelfLabel, Store
from overspill.text import lenient_json

DAY = 86_400


class Opening(Struct, frozen=True, tag_field="event", tag="session"):
    """The first line of a journal, in which a session that is opened again continues. A shelf without a whole one was never
    used; one that cannot be parsed is kept."""

    session: str
    name: str = ""
    retention: Retention = "session"
    t: int = 0

    @classmethod
    def now(cls, session: str, name: str, retention: Retention) -> Opening:
        return cls(session, name, retention, time.time_ns() // 1_000_000)

    @classmethod
    def parse(cls, session: str, line: bytes) -> Opening:
        """Keep what is damaged or belongs to another session, because it may still be needed."""
        found = lenient_json.parse(line, cls)
        return found if found is not None and found.session == session else cls(session, retention="keep")

    def label(self, *, live: bool) -> ShelfLabel:
        return ShelfLabel(self.session, live=live, name=self.name, retention=self.retention)

    @property
    def line(self) -> bytes:
        return msgspec.json.encode(self) + b"\n"


class KeptItem(Struct, frozen=True):
    """What the keep limits remove as one: a closed session, or one output of a live session."""

    session: str
    id: str
    """The id of the output; empty for a session."""
    used: float
    """Unix seconds of the last time it was written or read."""
    bytes: int
    family: str = ""
    """The family whose limit it counts towards."""


class Measurement(Struct, frozen=True):
    """What each family kept after these limits were applied, noted for other processes."""

    limits: KeepLimits
    families: dict[str, int]
    t: float = 0.0
    """When they were applied, in unix seconds."""

    def age(self, now: float) -> float:
        """The age in seconds. If the clock was set back, the measurement counts as old, so that it is not used for long."""
        return now - self.t if now >= self.t else float("inf")


def family_of(name: str) -> str:
    """The family whose limits a session of this name counts towards. Sessions without a family share one set of limits."""
    return name.rpartition("/")[0]


def choose_named(name: str, found: Iterable[ShelfLabel]) -> str | None:
    """The kept session among those with this name, or None. Raises NameInUse if one of them is live."""
    labels = list(found)
    if any(label.live for label in labels):
        raise rules.name_in_use_error(name)
    return next((label.session for label in labels if label.retention == "keep"), None)


def expire(
    items: Sequence[KeptItem],
    kept_bytes: Mapping[str, int],
    remove: Callable[[KeptItem], bool],
    limits: KeepLimits,
    *,
    now: float,
    family: str | None = None,
) -> Expired:
    """Apply the limits to these items. `remove` returns False if an item was used after it was measured, or is already gone."""
    doomed = expired_items(items, kept_bytes, limits, now=now, family=family)
    removed = [item for item in doomed if remove(item)]
    left = Counter(kept_bytes)
    for item in removed:
        left[item.family] -= item.bytes
    return Expired(
        sessions=[item.session for item in removed if not item.id],
        outputs=[item.id for item in removed if item.id],
        bytes=sum(left.values()),
        families=dict(left),
    )


def expired_items(
    items: Sequence[KeptItem], kept_bytes: Mapping[str, int], limits: KeepLimits, *, now: float, family: str | None = None
) -> list[KeptItem]:
    """Items to remove: those unused for too long, then the longest unused of each family until `kept_bytes`, the size of all that
    it keeps, including what cannot be removed, is within the limit. `now` is by the clock that `used` is from. Size alone never
    removes what was used in the last 24 hours, nor, if a family is given, what belongs to another."""
    excess = Counter({each: kept - limits.bytes for each, kept in kept_bytes.items()})
    doomed: list[KeptItem] = []
    for item in sorted(items, key=lambda item: (item.used, item.session, item.id)):
        unused = now - item.used
        is_too_much = excess[item.family] > 0 and family in (None, item.family)
        if unused > limits.days * DAY or (is_too_much and unused > DAY):
            doomed.append(item)
            excess[item.family] -= item.bytes
    return doomed


PAGE_SHELVES = 1_000


def list_families(name: str) -> list[str]:
    """The families that list a session of this name: its own name, and what comes before the last slash."""
    return [family for family in (name, name.rpartition("/")[0]) if family]


def list_shelves(store: Store, family: str = "", *, after: str = "") -> Iterator[ShelfLabel]:
    """The labels of all shelves, or of one family's, oldest first. They are fetched in pages."""
    while True:
        page = store.shelves(family=family, after=after, most=PAGE_SHELVES)
        yield from page
        if len(page) < PAGE_SHELVES:
            return
        after = page[-1].session
