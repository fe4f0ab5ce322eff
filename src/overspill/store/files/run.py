"""What one process creates in a root: a directory that is locked while the process lives, and a quota for all its shelves.

A session without a name is new. With a name, it is the kept session of that name, or a new one. Only one process at a time can
take a name.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from threading import RLock
from weakref import ref

from overspill.errors import StoreError
from overspill.store import keep, rules
from overspill.store.files import index, layout, lock, survey
from overspill.store.files.index import Index, IndexAway, IndexDamaged
from overspill.store.files.layout import Directory, Place, Root
from overspill.store.files.shelf import Journal, LiveFileShelf, read_opening
from overspill.store.files.survey import ShelfIndex
from overspill.store.keep import Opening
from overspill.store.protocols import KeepLimits
from overspill.store.quota import KeepGuard, Quota

_PAUSE_SECONDS = 0.01  # between two checks of a session that another process is creating


class StoreRun:
    _over = True  # set to False once the run has begun

    def __init__(self, root: Root, *, run_bytes: int, mutex: RLock, guard: KeepGuard) -> None:
        self.guard = guard
        with ExitStack() as undo:
            self._root = undo.enter_context(root.open())
            self.quota = Quota(min(run_bytes, shutil.disk_usage(root.path).free // 2))
            self._directory, self._lock = lock.make_held(self._root, lambda: f"overspill-{secrets.token_hex(6)}")
            undo.pop_all()
        self._shelves: set[LiveFileShelf] = set()
        self._mutex = mutex
        self._attempts = 0
        # Not the run itself, because then neither it nor its store could be collected, and its files would stay open.
        self._at_exit = partial(_end, ref(self))
        atexit.register(self._at_exit)
        self._over = False

    def __del__(self) -> None:
        self.end()

    @property
    def name(self) -> str:
        return self._directory.path.name

    @property
    def usable(self) -> bool:
        """Whether this run can be used: not after it has ended, in a forked child, or if its directory was removed."""
        return not self._over and not self._lock.inherited and os.fstat(self._directory.fd).st_nlink > 0

    def has_session(self, session: str) -> bool:
        return layout.has_session(self._directory, session)

    def create_shelf(self, wanted: Opening, limits: KeepLimits | None) -> LiveFileShelf:
        session = wanted.session
        with ExitStack() as undo:
            directory, hold = lock.make_held(self._directory, lambda: layout.session_directory(session))
            undo.enter_context(directory)
            undo.callback(hold.release)
            undo.callback(survey.remove_session, self._root, self._directory, session, directory)
            journal = Journal(directory, is_new=True)
            undo.callback(journal.close, durable=False)
            journal.append(wanted.line)
            undo.pop_all()
        return self._add_shelf(wanted, directory, hold, journal, limits)

    def reopen_shelf(self, session: str, directory: Directory, name: str, limits: KeepLimits | None) -> LiveFileShelf:
        """Reopen a kept shelf in its place. Raises NameInUse if another process holds it, FileNotFoundError if it was removed."""
        with ExitStack() as undo:
            undo.enter_context(directory)
            hold = lock.take(directory)
            if hold is None:
                raise rules.name_in_use_error(name)
            undo.callback(hold.release)
            journal = Journal(directory, is_new=False)
            undo.pop_all()
        return self._add_shelf(Opening(session, name, "keep"), directory, hold, journal, limits)

    def _add_shelf(
        self, opening: Opening, directory: Directory, hold: lock.Lock, journal: Journal, limits: KeepLimits | None
    ) -> LiveFileShelf:
        family = keep.family_of(opening.name)
        quota = self.guard.make_quota(self.quota, opening.session, family, opening.retention, limits)
        shelf = LiveFileShelf(opening, directory, hold, journal, quota, self._mutex, self._forget_shelf)
        self._shelves.add(shelf)
        return shelf

    def _forget_shelf(self, shelf: LiveFileShelf) -> None:
        """Forget a closed shelf, remove it unless it is kept, and end the run if it is idle. Called with the mutex held."""
        self._shelves.discard(shelf)
        self.guard.leave(shelf.session)
        if shelf.retention == "session":
            survey.remove_session(self._root, self._directory, shelf.session, shelf.directory)
            self.quota.release(shelf.session)
        self._end_if_idle()

    @contextmanager
    def keep_for_attempts(self) -> Generator[None]:
        """Keep the run from ending between two attempts to open a shelf. Called with the mutex held."""
        self._attempts += 1
        try:
            yield
        finally:
            self._attempts -= 1
            self._end_if_idle()

    def _end_if_idle(self) -> None:
        if not (self._over or self._shelves or self._attempts or layout.list_sessions(self._directory)):
            self.end()

    def end(self) -> None:
        """Close what is open and remove what is not to be kept. In a forked child, release it without touching any file."""
        if self._over:
            return
        with self._mutex:
            if self._over:
                return
            self._over = True
            atexit.unregister(self._at_exit)
            with ExitStack() as last:
                last.callback(self._root.close)
                last.callback(self._directory.close)
                last.callback(self._lock.release)
                if not self._lock.inherited:
                    last.callback(self._note_written)
                    last.callback(survey.clear_run, self._root, self._directory)
                for shelf in self._shelves:
                    last.callback(shelf.close)

    def _note_written(self) -> None:
        if changes := self.guard.finish():
            with suppress(OSError, StoreError), index.open_index(self._root) as found:
                if found is not None:
                    found.add(changes)


def _end(run: ref[StoreRun]) -> None:
    if begun := run():
        begun.end()


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
        """Open the shelf that the index has for the name, or a new one. None if another process took the name first."""
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
        if place and self._is_made(place):  # made after `find`; its process may have seen its name in the index before `put`
            names.put(self._name, place, instead_of=chosen)
            raise IndexAway("Another process has opened the session.")
        return self._reopen(found) if found else self._create(names, chosen)

    def _open_by_listing(self) -> LiveFileShelf | None:
        """Find the shelf without the index, whose path is taken by something else. None if the index is usable again."""
        if self._is_unique:
            return self._run.create_shelf(self._wanted, self._limits)
        self._sessions.survey(self._root)  # before others have to wait for us
        with self._hold_alone(), index.open_index(self._root) as names:
            if names is not None:
                return None
            found = self._find()
            return (self._reopen(found) if found else None) or self._run.create_shelf(self._wanted, self._limits)

    def _fill(self, names: Index) -> None:
        """Give every name its session. Must run alone: without an index, names are assigned by listing."""
        if names.is_whole:
            return
        self._sessions.survey(self._root)  # before others have to wait for us
        with self._hold_alone():
            if not names.is_whole:
                found, refusals = self._sessions.survey(self._root)
                named = [each for each in found.values() if each.opening.name]
                named.sort(key=lambda each: (each.opening.retention != "keep", each.place.session))  # the first one gets its name
                names.fill([(each.opening.name, each.place) for each in named], is_all=not refusals)

    def _hold_alone(self) -> AbstractContextManager[None]:
        return lock.hold_alone(self._root, within=self._deadline - time.monotonic())

    def _create(self, names: Index, place: Place) -> LiveFileShelf:
        try:
            shelf = self._run.create_shelf(self._wanted, self._limits)
        except BaseException:
            with suppress(StoreError):
                names.remove(self._name, place)
            raise
        if not names.is_there() or names.find(self._name) != place:  # the index was replaced by one without this name
            shelf.discard()
            raise IndexDamaged("The index of names was replaced. Try again.")
        return shelf

    def _reopen(self, place: Place) -> LiveFileShelf | None:
        """Reopen the kept session of the name in that place; None if it is not there. Raises NameInUse while others hold it."""
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
