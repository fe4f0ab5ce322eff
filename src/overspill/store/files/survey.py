"""Survey a root that many runs share: which shelves it has, which are live, and which directories cannot be trusted."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from threading import RLock

from msgspec import Struct

from overspill.errors import StoreError, UnknownHandle
from overspill.store.files import layout, lock
from overspill.store.files.failures import to_store_error
from overspill.store.files.journal import Opening, read_opening
from overspill.store.files.layout import Directory, Place
from overspill.store.listing import SessionIndex
from overspill.store.protocols import ShelfLabel

_SECOND_NS = 1_000_000_000
_MOMENT_NS = 100_000_000
"""What changes in one moment may have the same time. File systems that count whole seconds have a longer one."""


class Survey(Struct, frozen=True):
    shelves: list[tuple[Place, ShelfLabel]]
    refusals: list[StoreError]
    """Directories of this user that look like a run or a session but cannot be trusted."""


class Visit(Struct, frozen=True):
    """A session's directory, open as long as it is visited, and how its journal begins."""

    place: Place
    directory: Directory
    opening: Opening

    @property
    def label(self) -> ShelfLabel:
        first = self.opening
        return ShelfLabel(self.place.session, live=lock.is_held(self.directory), name=first.name, retention=first.retention)


class ShelfIndex:
    """Remembers where the sessions of a root are and how their journals begin. Neither changes as long as a session exists, so
    that only new sessions, and those of runs that are live, cost anything. What it finds may have been removed meanwhile."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, Opening | None]] = {}
        """How the journals of the sessions of each run begin."""
        self._final: set[str] = set()
        """Runs whose processes have ended and that have only kept sessions: none is added, and they are not looked at again."""
        self._others: list[str] = []
        """The runs that have to be looked at again."""
        self._listed_at: tuple[int, int] | None = None
        self._places: dict[str, Place] = {}
        self._sessions = SessionIndex()
        self._mutex = RLock()

    def learn(self, root: Directory) -> list[StoreError]:
        """Learn what is new in the root. Returns what cannot be trusted."""
        refusals: list[StoreError] = []
        with self._mutex:
            self._list_runs(root)
            for name in self._others:
                with _collect_refusals(refusals), root.open_directory(name) as run:
                    self._read_run(run, refusals)
            self._others = [name for name in self._others if name not in self._final]
        return refusals

    def _list_runs(self, root: Directory) -> None:
        """Nothing is listed if nothing was added or removed since."""
        found = os.fstat(root.fd)
        state = found.st_ino, found.st_ctime_ns
        if state == self._listed_at:
            return
        moment = _MOMENT_NS if found.st_ctime_ns % _SECOND_NS else 2 * _SECOND_NS
        self._listed_at = state if time.time_ns() - found.st_ctime_ns > moment else None
        names = layout.list_runs(root, self._final)
        for gone in self._runs.keys() - set(names):
            self._forget(gone)
        self._others = [name for name in names if name not in self._final]

    def visit(self, root: Directory) -> Iterator[Visit]:
        """Every session of this user that can be trusted; what is removed meanwhile is left out."""
        refusals = self.learn(root)
        for name in sorted(self._runs):
            with _collect_refusals(refusals), root.open_directory(name) as run:
                for session, opening in list(self._runs.get(name, {}).items()):
                    with _collect_refusals(refusals), run.open_directory(layout.session_directory(session)) as directory:
                        yield Visit(Place(name, session), directory, opening or Opening(session))

    def survey(self, root: Directory, family: str = "", after: str = "", most: int | None = None) -> Survey:
        """In the order of the sessions."""
        found = Survey([], self.learn(root))
        while most is None or len(found.shelves) < most:
            with self._mutex:
                sessions = self._sessions.find(family, after, None if most is None else most - len(found.shelves))
                places = [self._places[session] for session in sessions]
            if not places:
                break
            self._label(root, places, found)
            after = sessions[-1]
        return found

    def find_named(self, root: Directory, name: str) -> Survey:
        """Only the sessions of that name, without finding out which others of the family are live."""
        refusals = self.learn(root)
        with self._mutex:
            places = [self._places[session] for session in self._sessions.find(name)]
            named = [place for place in places if (opening := self._find_opening(place)) and opening.name == name]
        return self._label(root, named, Survey([], refusals))

    def list_clearable_runs(self, root: Directory) -> list[str]:
        """Runs that contain something other than kept sessions, or nothing. They may be live."""
        self.learn(root)
        runs = dict(self._runs)
        return [run for run in layout.list_runs(root, runs) if run not in runs or not _is_kept(runs[run])]

    def list_openings(self, root: Directory) -> tuple[list[tuple[Place, Opening]], list[StoreError]]:
        """How the journal of each session begins, and what cannot be trusted."""
        refusals = self.learn(root)
        with self._mutex:
            runs = self._runs.items()
            found = [(Place(run, session), opening) for run, openings in runs for session, opening in openings.items() if opening]
        return found, refusals

    def find(self, root: Directory, session: str) -> Place:
        known = self._places.get(session)
        if known is not None and _is_at(root, known):
            return known
        refusals: list[StoreError] = []
        for name in layout.list_runs(root, self._final):
            if name not in self._final:
                with _collect_refusals(refusals), root.open_directory(name) as run:
                    if layout.has_session(run, session):
                        return Place(name, session)
        raise refusals[0] if refusals else unknown_session_error(session)

    def read_label(self, root: Directory, place: Place) -> ShelfLabel:
        try:
            with place.open(root) as directory:
                opening = self._find_opening(place) or read_opening(place.session, directory) or Opening(place.session)
                return Visit(place, directory, opening).label
        except FileNotFoundError:
            raise unknown_session_error(place.session) from None

    def _label(self, root: Directory, places: list[Place], found: Survey) -> Survey:
        for place in places:
            try:
                with _collect_refusals(found.refusals):
                    found.shelves.append((place, self.read_label(root, place)))
            except UnknownHandle:  # another process has removed it
                self._forget_session(place)
        return found

    def _read_run(self, run: Directory, refusals: list[StoreError]) -> None:
        is_live = lock.is_held(run)  # before it is listed: what ends meanwhile may have begun a session before
        refused = len(refusals)
        openings: dict[str, Opening | None] = {}
        for session in layout.list_sessions(run):
            if known := self._find_opening(Place(run.path.name, session)):
                openings[session] = known
                continue
            with _collect_refusals(refusals), run.open_directory(layout.session_directory(session)) as directory:
                openings[session] = read_opening(session, directory)
        name = run.path.name
        if self._runs.get(name) != openings:
            self._forget(name)
            for session, opening in openings.items():
                self._sessions.add(session, opening.name if opening else "")
                self._places[session] = Place(name, session)
        self._runs[name] = openings
        if not is_live and _is_kept(openings) and len(refusals) == refused:
            self._final.add(name)

    def _find_opening(self, place: Place) -> Opening | None:
        return self._runs.get(place.run, {}).get(place.session)

    def _forget(self, run: str) -> None:
        self._final.discard(run)
        for session in list(self._runs.get(run, ())):
            self._forget_session(Place(run, session))
        self._runs.pop(run, None)

    def _forget_session(self, place: Place) -> None:
        with self._mutex:
            openings = self._runs.get(place.run, {})
            if place.session in openings:
                opening = openings.pop(place.session)
                self._sessions.remove(place.session, opening.name if opening else "")
                self._places.pop(place.session, None)


def has_many(root: Directory, most: int) -> bool:
    """Whether a root has more than so many entries and sessions, or files for ten times as many. They are counted only so far."""
    names = _list_some(root, most + 1)
    sessions = files = 0
    for name in names if len(names) <= most else ():
        with suppress(OSError, StoreError):
            if layout.is_run(name):
                with root.open_directory(name) as run:
                    for session in (inside := _list_some(run, most + 1)):
                        if session != layout.LOCK:
                            with run.open_directory(session) as directory:
                                files += len(_list_some(directory, 10 * most + 1))
                sessions += len(inside)
    return len(names) + sessions > most or files > 10 * most


def _list_some(directory: Directory, most: int) -> list[str]:
    with os.scandir(directory.fd) as entries:
        return [entry.name for entry in islice(entries, most)]


def _is_kept(openings: Mapping[str, Opening | None]) -> bool:
    """Whether there are sessions, and all are kept."""
    return bool(openings) and all(opening is not None and opening.retention == "keep" for opening in openings.values())


def unknown_session_error(session: str) -> UnknownHandle:
    return UnknownHandle(layout.session_directory(session))


def _is_at(root: Directory, place: Place) -> bool:
    try:
        with root.open_directory(place.run) as run:
            return layout.has_session(run, place.session)
    except (OSError, StoreError):
        return False


@contextmanager
def _collect_refusals(refusals: list[StoreError]) -> Generator[None]:
    try:
        yield
    except FileNotFoundError:
        return  # removed by its owner while we looked
    except OSError as error:
        refusals.append(to_store_error("open a directory in the store", error))
    except StoreError as refusal:
        refusals.append(refusal)
