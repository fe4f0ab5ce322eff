"""List the shelves of a store in pages, or only those of a family, without looking at the others."""

from __future__ import annotations

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
