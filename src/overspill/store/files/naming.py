"""Open the session of a name: the kept one that has it, or a new one that gets it. One process at a time does that for a name."""

from __future__ import annotations

import time
from contextlib import ExitStack

from overspill.store import rules
from overspill.store.files import hints, lock, names
from overspill.store.files.journal import Opening, read_opening
from overspill.store.files.layout import Directory
from overspill.store.files.names import NameEntry
from overspill.store.files.run import StoreRun
from overspill.store.files.shelf import LiveFileShelf
from overspill.store.files.survey import Place, ShelfIndex
from overspill.store.protocols import KeepLimits


class NamedShelves:
    """`index` lists the sessions of a store that has no hints yet, or a wrong one."""

    def __init__(self, index: ShelfIndex, max_wait_seconds: float) -> None:
        self._index = index
        self._max_wait_seconds = max_wait_seconds

    def open(self, root: Directory, run: StoreRun, wanted: Opening, limits: KeepLimits | None) -> LiveFileShelf:
        try:
            while True:
                with hints.open_folder(root, makes=True) as folder:
                    if folder is None:
                        shelf = self._open_by_listing(root, run, wanted, limits)
                    else:
                        shelf = self._open_by_hint(root, folder, run, wanted, limits)
                if shelf is not None:
                    return shelf
        except BaseException:
            names.remove_folder_if_empty(root)
            raise

    def _open_by_hint(
        self, root: Directory, folder: Directory, run: StoreRun, wanted: Opening, limits: KeepLimits | None
    ) -> LiveFileShelf | None:
        """None if another process has removed the folder, with the last name in it."""
        with ExitStack() as held:
            try:
                if not _is_unique(wanted):
                    self._fill(root, folder)
                deadline = time.monotonic() + self._max_wait_seconds
                entry = held.enter_context(names.hold(root, folder, wanted.name, deadline))
            except FileNotFoundError:
                return None
            shelf = self._reopen_hinted(root, folder, entry, run, wanted, limits)
            return shelf or _create(entry, run, wanted, limits)

    def _open_by_listing(
        self, root: Directory, run: StoreRun, wanted: Opening, limits: KeepLimits | None
    ) -> LiveFileShelf | None:
        """Where another user keeps us from having hints. None if not any more."""
        if not _is_unique(wanted):
            self._index.learn(root)  # before others have to wait for us
            with lock.hold_alone(root, within=self._max_wait_seconds), hints.open_folder(root) as folder:
                if folder is not None:
                    return None
                place = self._find(root, wanted.name)
                shelf = _reopen(root, place, run, wanted.name, limits) if place else None
                return shelf or run.create_shelf(wanted, limits)
        return run.create_shelf(wanted, limits)

    def _fill(self, root: Directory, folder: Directory) -> None:
        """Give every session of a name its hint. Alone, because where there are no hints, names are assigned by listing."""
        if names.is_whole(folder):
            return
        self._index.learn(root)  # before others have to wait for us
        with lock.hold_alone(root, within=self._max_wait_seconds):
            if not names.is_whole(folder):
                found, refusals = self._index.list_openings(root)
                names.fill(folder, found, is_all=not refusals)

    def _reopen_hinted(
        self, root: Directory, folder: Directory, entry: NameEntry, run: StoreRun, wanted: Opening, limits: KeepLimits | None
    ) -> LiveFileShelf | None:
        if entry.place and (shelf := _reopen(root, entry.place, run, wanted.name, limits)):
            return shelf
        if _is_unique(wanted) or (entry.is_new and names.is_whole(folder)):
            return None
        place = self._find(root, wanted.name)
        if place is None:
            return None
        entry.write(place)
        return _reopen(root, place, run, wanted.name, limits)

    def _find(self, root: Directory, name: str) -> Place | None:
        found = self._index.find_named(root, name)
        for place, label in found.shelves:
            if label.retention == "keep":
                return place
            if label.live:
                raise rules.name_in_use_error(name)
        # A shelf that cannot be trusted may have this name. Opening a second one would look as if everything had been lost.
        if found.refusals:
            raise found.refusals[0]
        return None


def _create(entry: NameEntry, run: StoreRun, wanted: Opening, limits: KeepLimits | None) -> LiveFileShelf:
    try:
        entry.write(Place(run.name, wanted.session))
        return run.create_shelf(wanted, limits)
    except BaseException:
        entry.remove()
        raise


def _reopen(root: Directory, place: Place, run: StoreRun, name: str, limits: KeepLimits | None) -> LiveFileShelf | None:
    """None if there is no kept session of that name in that place. Raises NameInUse while another process has it."""
    try:
        with ExitStack() as undo:
            directory = undo.enter_context(place.open(root))
            opening = read_opening(place.session, directory)
            if opening is None or opening.name != name or opening.retention != "keep":
                return None
            undo.pop_all()
        return run.reopen_shelf(place.session, directory, name, limits)
    except FileNotFoundError:  # another process has applied its keep limits
        return None


def _is_unique(wanted: Opening) -> bool:
    return rules.is_unique(wanted.name, wanted.session)
