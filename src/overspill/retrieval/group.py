"""Sessions of one owner, one after another: a later session may read what an ended one kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

from msgspec import Struct

from overspill import handles
from overspill.calls.background import find_last_change, restore_job
from overspill.calls.job import Job
from overspill.errors import HandleError, StoreError
from overspill.record import events
from overspill.record.events import Entry, OutputStored
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

    def find_named(self, name: str) -> set[str]:
        """The handles of the outputs that have this name."""
        found: set[str] = set()
        for shelf in self._ended_sessions():
            with suppress(StoreError), closing(shelf):
                names = _read_names(shelf)
                found.update(handles.handle(shelf.session, id) for id in names if names[id] == name)
        return found

    def list_names(self) -> set[str]:
        """All names that outputs of the family have, also those of live sessions."""
        taken: set[str] = set()
        for shelf in self._sessions():
            with suppress(StoreError), closing(shelf):
                taken.update(_read_names(shelf).values())
        return taken

    def find_failed_job(self, spelling: str) -> Job | None:
        """A job of an ended session that failed, or was still running when the session ended."""
        session, file = handles.parse(spelling)
        for shelf in self._ended_sessions(session):
            with suppress(StoreError), closing(shelf):
                if change := find_last_change(_events_about(shelf, file), file):
                    return None if change.state == "ready" else restore_job(change)
        return None

    def has_outputs(self) -> bool:
        for shelf in self._ended_sessions():
            with suppress(StoreError), ExitStack() as undo:
                undo.callback(shelf.close)
                if next(_stored_outputs(shelf), None):
                    return True
        return False

    def _ended_sessions(self, session: str | None = None) -> Iterator[Shelf]:
        return self._sessions(session, ended=True)

    def _sessions(self, session: str | None = None, *, ended: bool = False) -> Iterator[Shelf]:
        """Newest first, open for reading. A session that is removed meanwhile is left out."""
        labels = reversed(self._list_labels()) if session is None else self._find_label(session)
        for label in labels:
            if label.name.startswith(self._prefix) and not (ended and label.live):
                with suppress(HandleError, StoreError):
                    yield self._store.read_shelf(label.session)

    def _list_labels(self) -> list[ShelfLabel]:
        try:
            return self._store.shelves()
        except StoreError:  # a store that cannot be read has nothing to offer, and the session works without
            return []

    def _find_label(self, session: str) -> list[ShelfLabel]:
        try:
            return [self._store.label(session)]
        except (HandleError, StoreError):
            return []


def _stored_outputs(shelf: Shelf) -> Iterator[Kept]:
    for event in events.decode_events(shelf.journal()):
        if isinstance(event, OutputStored) and event.kept.session == shelf.session:
            yield event.kept


def _read_names(shelf: Shelf) -> dict[str, str]:
    """The names of a session's outputs, by id."""
    lines = (line for line in shelf.journal() if b'"event":"kept"' in line)  # most lines are not decoded
    stored = (event.kept for event in events.decode_events(lines) if isinstance(event, OutputStored))
    return {kept.id: kept.name for kept in stored if kept.session == shelf.session and handles.is_uuid(kept.id)}


def _events_about(shelf: Shelf, id: str) -> Iterator[Entry]:
    """Most lines are not decoded."""
    written = id.encode()
    return events.decode_events(line for line in shelf.journal() if written in line)
