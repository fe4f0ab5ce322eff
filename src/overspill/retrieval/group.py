"""Sessions of one owner, one after another: what an ended one kept, a later one may read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress

from msgspec import Struct

from overspill import handles
from overspill.errors import HandleError, StoreError
from overspill.record import events
from overspill.record.events import OutputStored
from overspill.store.protocols import Shelf, Store
from overspill.types import Kept


class GroupOutput(Struct, frozen=True):
    """An output of an ended session of the family, and the shelf it is on, open for reading."""

    kept: Kept
    shelf: Shelf


class SessionGroup:
    """`name` is what the names of its sessions begin with, up to the slash. Blocks."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._prefix = f"{name}/"

    def find(self, spelling: str) -> GroupOutput | None:
        session, file = handles.parse(spelling)
        for shelf, outputs in self._ended_sessions(session):
            if file in outputs:
                return GroupOutput(outputs[file], shelf)
            shelf.close()
        return None

    def has_outputs(self) -> bool:
        for shelf, outputs in self._ended_sessions():
            shelf.close()
            if outputs:
                return True
        return False

    def _ended_sessions(self, session: str | None = None) -> Iterator[tuple[Shelf, dict[str, Kept]]]:
        """Newest first, open for reading, with what each has stored; one that is removed meanwhile is passed over."""
        for label in reversed(self._store.shelves()):
            if label.name.startswith(self._prefix) and session in (None, label.session) and not label.live:
                with suppress(HandleError, StoreError), ExitStack() as undo:
                    shelf = self._store.read_shelf(label.session)
                    undo.callback(shelf.close)
                    outputs = _stored_outputs(shelf)
                    undo.pop_all()
                    yield shelf, outputs


def _stored_outputs(shelf: Shelf) -> dict[str, Kept]:
    found = (event.kept for event in events.decode_events(shelf.journal()) if isinstance(event, OutputStored))
    return {kept.id: kept for kept in found if kept.session == shelf.session}
