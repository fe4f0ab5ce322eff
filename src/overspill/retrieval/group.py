"""Sessions of one owner, one after another: a later session may read what an ended one kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress

from msgspec import Struct

from overspill import handles
from overspill.errors import HandleError, StoreError
from overspill.record import events
from overspill.record.events import OutputStored
from overspill.store.protocols import Shelf, ShelfLabel, Store
from overspill.types import Kept


class GroupOutput(Struct, frozen=True):
    """An output of an ended session of the group, and the shelf it is on, open for reading."""

    kept: Kept
    shelf: Shelf


class SessionGroup:
    """The sessions whose names begin with `name` and a slash. All methods block."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._prefix = f"{name}/"

    def find(self, spelling: str) -> GroupOutput | None:
        session, file = handles.parse(spelling)
        for shelf in self._ended_sessions(session):
            with suppress(HandleError, StoreError), ExitStack() as undo:
                undo.callback(shelf.close)
                if session is None:
                    shelf.open(file).close()  # most sessions do not have it, and their journals need not be read
                for kept in _stored_outputs(shelf):
                    if kept.id == file:
                        undo.pop_all()
                        return GroupOutput(kept, shelf)
        return None

    def has_outputs(self) -> bool:
        for shelf in self._ended_sessions():
            with suppress(StoreError), ExitStack() as undo:
                undo.callback(shelf.close)
                if next(_stored_outputs(shelf), None):
                    return True
        return False

    def _ended_sessions(self, session: str | None = None) -> Iterator[Shelf]:
        """Newest first, open for reading. A session that is removed meanwhile is left out."""
        labels = reversed(self._store.shelves()) if session is None else self._find_label(session)
        for label in labels:
            if label.name.startswith(self._prefix) and not label.live:
                with suppress(HandleError, StoreError):
                    yield self._store.read_shelf(label.session)

    def _find_label(self, session: str) -> list[ShelfLabel]:
        try:
            return [self._store.label(session)]
        except (HandleError, StoreError):
            return []


def _stored_outputs(shelf: Shelf) -> Iterator[Kept]:
    for event in events.decode_events(shelf.journal()):
        if isinstance(event, OutputStored) and event.kept.session == shelf.session:
            yield event.kept
