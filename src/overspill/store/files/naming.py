"""Open the session of a name: the kept one that has it, or a new one that gets it. One process at a time gets a name."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, ExitStack, suppress

from overspill.errors import StoreError
from overspill.store import rules
from overspill.store.files import index, lock
from overspill.store.files.index import Index, IndexAway, IndexDamaged
from overspill.store.files.journal import read_opening
from overspill.store.files.layout import Directory, Place
from overspill.store.files.run import StoreRun
from overspill.store.files.shelf import LiveFileShelf
from overspill.store.files.survey import ShelfIndex
from overspill.store.keep import Opening
from overspill.store.protocols import KeepLimits

_PAUSE_SECONDS = 0.01  # between two looks at a session that another process makes


class NamedOpening:
    """`sessions` lists those of a store whose index is missing or wrong. `patience`: seconds to wait for other processes."""

    def __init__(
        self, sessions: ShelfIndex, root: Directory, run: StoreRun, wanted: Opening, limits: KeepLimits | None, patience: float
    ) -> None:
        self._sessions, self._root, self._run = sessions, root, run
        self._wanted, self._name, self._limits = wanted, wanted.name, limits
        self._is_unique = rules.is_unique(wanted.name, wanted.session)
        self._patience, self._deadline = patience, time.monotonic() + patience

    def open(self) -> LiveFileShelf:
        try:
            while True:
                try:
                    with index.open_index(self._root, makes=True, within=self._patience) as names:
                        shelf = self._open_by_listing() if names is None else self._open_by_name(names)
                    if shelf is not None:
                        return shelf
                except (IndexAway, IndexDamaged) as error:
                    if time.monotonic() >= self._deadline:
                        raise lock.too_long_error(self._root) from error
                    time.sleep(_PAUSE_SECONDS)
        except BaseException:
            index.forget(self._root)
            raise

    def _open_by_name(self, names: Index) -> LiveFileShelf | None:
        """None if another process has been faster."""
        if not self._is_unique:
            self._fill(names)
        place = names.find(self._name)
        if place and (shelf := self._reopen(place)):
            return shelf
        if place and (self._is_made(place) or self._is_being_made(place)):
            raise IndexAway("Another process is opening the session.")
        is_new = self._is_unique or (place is None and names.is_whole)
        found = None if is_new else self._find()
        chosen = found or Place(self._run.name, self._wanted.session)
        if not names.put(self._name, chosen, instead_of=place):
            return None
        if place and self._is_made(place):  # since we looked; its process may have found its name in the index before we took it
            names.put(self._name, place, instead_of=chosen)
            raise IndexAway("Another process has opened the session.")
        return self._reopen(found) if found else self._create(names, chosen)

    def _open_by_listing(self) -> LiveFileShelf | None:
        """Where something else has the place of the index. None if not any more."""
        if self._is_unique:
            return self._run.create_shelf(self._wanted, self._limits)
        self._sessions.survey(self._root)  # before others have to wait for us
        with self._hold_alone(), index.open_index(self._root) as names:
            if names is not None:
                return None
            found = self._find()
            return (self._reopen(found) if found else None) or self._run.create_shelf(self._wanted, self._limits)

    def _fill(self, names: Index) -> None:
        """Give every name its session. Alone, because where there is no index, names are assigned by listing."""
        if names.is_whole:
            return
        self._sessions.survey(self._root)  # before others have to wait for us
        with self._hold_alone():
            if not names.is_whole:
                found = self._sessions.survey(self._root)
                named = [(each.opening, each.place) for each in found.sessions.values() if each.opening.name]
                named.sort(key=lambda each: (each[0].retention != "keep", each[0].session))  # the first of a name gets it
                names.fill([(opening.name, place) for opening, place in named], is_all=not found.refusals)

    def _hold_alone(self) -> AbstractContextManager[None]:
        return lock.hold_alone(self._root, within=self._deadline - time.monotonic())

    def _create(self, names: Index, place: Place) -> LiveFileShelf:
        try:
            shelf = self._run.create_shelf(self._wanted, self._limits)
        except BaseException:
            with suppress(StoreError):
                names.remove(self._name, place)
            raise
        if not names.is_there() or names.find(self._name) != place:  # it was replaced, without this name
            shelf.discard()
            raise IndexDamaged("The index of names was replaced. Try again.")
        return shelf

    def _reopen(self, place: Place) -> LiveFileShelf | None:
        """None if there is no kept session of that name in that place. Raises NameInUse while another process has it."""
        try:
            with ExitStack() as undo:
                directory = undo.enter_context(place.open(self._root))
                opening = read_opening(place.session, directory)
                if opening.name != self._name:
                    return None
                if opening.retention != "keep":
                    if lock.is_held(directory):
                        raise rules.name_in_use_error(self._name)
                    return None
                undo.pop_all()
            return self._run.reopen_shelf(place.session, directory, self._name, self._limits)
        except FileNotFoundError:  # another process has applied its keep limits
            return None

    def _is_made(self, place: Place) -> bool:
        """Whether there is a session of that name in that place, kept or in use."""
        with suppress(FileNotFoundError), place.open(self._root) as directory:
            opening = read_opening(place.session, directory)
            return opening.name == self._name and (opening.retention == "keep" or lock.is_held(directory))
        return False

    def _is_being_made(self, place: Place) -> bool:
        """Whether the process that took the name lives, and its session has no first line yet."""
        with suppress(FileNotFoundError), self._root.open_directory(place.run) as run:
            if place.run == self._run.name or not lock.is_held(run):
                return False
            with suppress(FileNotFoundError), place.open(self._root) as directory:
                return read_opening(place.session, directory) == Opening(place.session) and lock.is_held(directory)
            return True
        return False

    def _find(self) -> Place | None:
        found, refusals = self._sessions.list_labels(self._root, self._name)
        for place, label in found:
            if label.name != self._name:
                continue
            if label.retention == "keep":
                return place
            if label.live:
                raise rules.name_in_use_error(self._name)
        # A shelf that cannot be trusted may have this name. Opening a second one would look as if everything had been lost.
        if refusals:
            raise refusals[0]
        return None
