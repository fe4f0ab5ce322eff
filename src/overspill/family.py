"""Sessions of one owner, one after another: what an ended one kept, a later one may read."""

from __future__ import annotations

from msgspec import Struct

from overspill import events, ids
from overspill.errors import HandleError, StoreError
from overspill.events import Stored
from overspill.store.base import Shelf, Store
from overspill.types import Kept


class Relative(Struct, frozen=True):
    """An output of an ended session of the family, and the shelf it is on, open for reading."""

    kept: Kept
    shelf: Shelf


class Family:
    """`name` is what the names of its sessions begin with, up to the slash. Blocks."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._prefix = f"{name}/"

    def find(self, spelling: str) -> Relative | None:
        session, file = ids.parse(spelling)
        for label in self._store.shelves():
            if label.name.startswith(self._prefix) and session in (None, label.session) and not label.live:
                try:
                    shelf = self._store.read_shelf(label.session)
                except (HandleError, StoreError):  # it ended meanwhile
                    continue
                for event in events.read(shelf.journal()):
                    if isinstance(event, Stored) and event.kept.id == file and event.kept.session == label.session:
                        return Relative(event.kept, shelf)
                shelf.close()
        return None
