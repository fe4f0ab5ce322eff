"""List the shelves of a store in pages, or only those of a family, without looking at the others."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from overspill.store.protocols import ShelfLabel, Store

PAGE_SHELVES = 1_000


def list_families(name: str) -> list[str]:
    """The families that list a session of this name: its own name, and what comes before the last slash."""
    return [family for family in (name, name.rpartition("/")[0]) if family]


def list_shelves(store: Store, family: str = "", *, after: str = "") -> Iterator[ShelfLabel]:
    """Oldest first, fetched in pages."""
    while True:
        page = store.shelves(family=family, after=after, most=PAGE_SHELVES)
        yield from page
        if len(page) < PAGE_SHELVES:
            return
        after = page[-1].session


class SessionIndex:
    """Sessions in the order of their ids, all of them and those of each family, in memory."""

    def __init__(self) -> None:
        self._all: list[str] = []
        self._families: dict[str, list[str]] = {}

    def add(self, session: str, name: str) -> None:
        insort(self._all, session)
        for family in list_families(name):
            insort(self._families.setdefault(family, []), session)

    def remove(self, session: str, name: str) -> None:
        _remove(self._all, session)
        for family in list_families(name):
            members = self._families.get(family, [])
            _remove(members, session)
            if not members:
                self._families.pop(family, None)

    def find(self, family: str = "", after: str = "", most: int | None = None) -> list[str]:
        found = self._families.get(family, []) if family else self._all
        start = bisect_right(found, after)
        return found[start : None if most is None else start + most]


def _remove(ordered: list[str], session: str) -> None:
    at = bisect_left(ordered, session)
    if at < len(ordered) and ordered[at] == session:
        del ordered[at]
