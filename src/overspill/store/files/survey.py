"""Survey a root that many runs share: which shelves it has, which are live, and which directories cannot be trusted."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from threading import RLock

from msgspec import Struct

from overspill.errors import StoreError, UnknownHandle
from overspill.store.files import layout, lock
from overspill.store.files.failures import to_store_error
from overspill.store.files.journal import read_opening
from overspill.store.files.layout import Directory, Place
from overspill.store.keep import Opening, list_families
from overspill.store.protocols import ShelfLabel

_SECOND_NS = 1_000_000_000
_MOMENT_NS = 100_000_000
"""What changes in one moment may have the same time. File systems that count whole seconds have a longer one."""


class FoundSession(Struct, frozen=True):
    """Where a session is, and how its journal begins."""

    place: Place
    opening: Opening


class Survey(Struct, frozen=True):
    sessions: dict[str, FoundSession]
    refusals: list[StoreError]
    """Directories of this user that look like a run or a session but cannot be trusted."""


class ShelfIndex:
    """Remembers where the sessions of a root are and how their journals begin. Neither changes as long as a session exists, so
    that only new sessions, and those of runs that are live, cost anything. What it finds may have been removed meanwhile."""

    def __init__(self) -> None:
        self._final: dict[str, dict[str, FoundSession]] = {}
        """Runs whose processes have ended and that have only kept sessions: none is added, and they are not looked at again."""
        self._others: dict[str, dict[str, FoundSession]] = {}
        """The runs that have to be looked at again."""
        self._listed_at: tuple[int, int] | None = None
        self._known: dict[str, FoundSession] = {}
        """In the order of the sessions."""
        self._families: dict[str, list[FoundSession]] = {}
        self._mutex = RLock()

    def survey(self, root: Directory) -> Survey:
        """Every session of this user that can be trusted."""
        refusals: list[StoreError] = []
        with self._mutex:
            if is_new := self._is_changed(root):
                names = layout.list_runs(root, self._final)
                self._final = {name: self._final[name] for name in names if name in self._final}
                self._others = {name: self._others.get(name, {}) for name in names if name not in self._final}
            others: dict[str, dict[str, FoundSession]] = {name: {} for name in self._others}
            for name in self._others:
                with _collect_refusals(refusals), root.open_directory(name) as run:
                    others[name] = self._read_run(run, refusals)
            if is_new or others != self._others:
                self._arrange([*self._final.values(), *others.values()])
            self._others = {name: found for name, found in others.items() if name not in self._final}
            return Survey(self._known, refusals)

    def _is_changed(self, root: Directory) -> bool:
        """Whether something may have been added or removed since the root was listed."""
        found = os.fstat(root.fd)
        state = found.st_ino, found.st_ctime_ns
        if state == self._listed_at:
            return False
        moment = _MOMENT_NS if found.st_ctime_ns % _SECOND_NS else 2 * _SECOND_NS
        self._listed_at = state if time.time_ns() - found.st_ctime_ns > moment else None
        return True

    def _arrange(self, runs: list[dict[str, FoundSession]]) -> None:
        everything = {session: found for run in runs for session, found in run.items()}
        self._known = {session: everything[session] for session in sorted(everything)}
        self._families = {}
        for found in self._known.values():
            for family in list_families(found.opening.name):
                self._families.setdefault(family, []).append(found)

    def list_labels(
        self, root: Directory, family: str = "", after: str = "", most: int | None = None
    ) -> tuple[list[tuple[Place, ShelfLabel]], list[StoreError]]:
        """In the order of the sessions; and what cannot be trusted. What is removed meanwhile is left out."""
        found = self.survey(root)
        labels: list[tuple[Place, ShelfLabel]] = []
        for each in self._families.get(family, []) if family else found.sessions.values():
            if most is not None and len(labels) >= most:
                break
            if each.place.session > after:
                with _collect_refusals(found.refusals), each.place.open(root) as directory:
                    labels.append((each.place, each.opening.label(live=lock.is_held(directory))))
        return labels, found.refusals

    def visit(self, root: Directory) -> Iterator[tuple[FoundSession, Directory]]:
        """Every session that can be trusted, with its open directory. What is removed meanwhile is left out."""
        for each in self.survey(root).sessions.values():
            with _collect_refusals([]), each.place.open(root) as directory:
                yield each, directory

    def list_clearable_runs(self, root: Directory) -> list[str]:
        """Runs that may contain something other than kept sessions, or nothing. They may be live."""
        self.survey(root)
        return [run for run in layout.list_runs(root, self._final) if run not in self._final]

    def find(self, root: Directory, session: str) -> Place:
        known = self._known.get(session)
        if known is not None and _is_at(root, known.place):
            return known.place
        refusals: list[StoreError] = []
        for name in layout.list_runs(root, self._final):
            if name not in self._final:
                with _collect_refusals(refusals), root.open_directory(name) as run:
                    if layout.has_session(run, session):
                        return Place(name, session)
        raise refusals[0] if refusals else unknown_session_error(session)

    def _read_run(self, run: Directory, refusals: list[StoreError]) -> dict[str, FoundSession]:
        is_live = lock.is_held(run)  # before it is listed: what ends meanwhile may have begun a session before
        refused = len(refusals)
        found: dict[str, FoundSession] = {}
        for session in layout.list_sessions(run):
            place, known = Place(run.path.name, session), self._known.get(session)
            if known is not None and known.place == place and known.opening.t:  # or else it had no first line yet
                found[session] = known
                continue
            with _collect_refusals(refusals), run.open_directory(layout.session_directory(session)) as directory:
                found[session] = FoundSession(place, read_opening(session, directory))
        is_kept = all(each.opening.retention == "keep" for each in found.values())
        if found and is_kept and not is_live and len(refusals) == refused:
            self._final[run.path.name] = found
        return found


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
