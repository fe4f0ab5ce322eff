"""The contents of a root that many runs share: its sessions, which of them are live, and directories that cannot be trusted.

Removes only what no session needs any more: names of exactly our layout that belong to this user and are not locked. If two
processes clear the same run, they meet each other's locks or find files gone. Both are fine. So is a process that opens a session
in what is being removed: it finds its lock gone, or the directory stays because the new lock is in it.
"""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from threading import RLock

from msgspec import Struct

from overspill import handles
from overspill.errors import StoreError, UnknownHandle
from overspill.store import keep
from overspill.store.files import index, layout, lock
from overspill.store.files.layout import PART, Directory, Place, to_store_error
from overspill.store.files.shelf import read_opening
from overspill.store.keep import KeptItem, Opening
from overspill.store.protocols import ShelfLabel
from overspill.store.quota import Quota

_MOMENT_NS = 2_000_000_000
"""Changes this close together may have the same time: some file systems count whole seconds, or two."""


class FoundSession(Struct, frozen=True):
    """Where a session is, and how its journal begins."""

    place: Place
    opening: Opening


class ShelfIndex:
    """Remembers where the sessions of a root are and how their journals begin. Neither changes as long as a session exists, so
    only new sessions, and those of live runs, cost anything. A session that it finds may have been removed since."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, FoundSession]] = {}
        self._final: set[str] = set()
        """Runs whose processes have ended and that have only kept sessions. They get no new ones, so they are not read again."""
        self._others: list[str] = []
        """The runs that must be read again."""
        self._listed_at: tuple[int, int] | None = None
        """The root and its time of change, if nothing can have been added or removed since then."""
        self._known: dict[str, FoundSession] = {}
        """In the order of the sessions."""
        self._families: dict[str, list[FoundSession]] = {}
        self._mutex = RLock()

    def survey(self, root: Directory) -> tuple[Mapping[str, FoundSession], list[StoreError]]:
        """Every session of this user that can be trusted, and why others, which look like a run or a session, cannot."""
        refusals: list[StoreError] = []
        with self._mutex:
            state = (now := os.fstat(root.fd)).st_ino, now.st_ctime_ns
            if is_new := state != self._listed_at:
                names = layout.list_runs(root, self._final)
                self._final.intersection_update(names)
                self._runs = {name: self._runs.get(name, {}) for name in names}
                self._others = [name for name in names if name not in self._final]
                self._listed_at = state if time.time_ns() - now.st_ctime_ns > _MOMENT_NS else None
            final: set[str] = set()
            for name in self._others:
                before, self._runs[name] = self._runs[name], {}
                with _collect_refusals(refusals), root.open_directory(name) as run:
                    self._runs[name] = self._read_run(run, refusals, final)
                is_new = is_new or before != self._runs[name]
            self._others = [name for name in self._others if name not in final]
            if is_new:
                everything = {session: found for run in self._runs.values() for session, found in run.items()}
                self._known, self._families = dict(sorted(everything.items())), {}
                for found in self._known.values():
                    for family in keep.list_families(found.opening.name):
                        self._families.setdefault(family, []).append(found)
            self._final |= final  # last, because other threads look into these runs until their sessions are known
            return self._known, refusals

    def _read_run(self, run: Directory, refusals: list[StoreError], final: set[str]) -> dict[str, FoundSession]:
        is_live = lock.is_held(run)  # checked before listing: a run that ends in between may have begun a session
        refused = len(refusals)
        found: dict[str, FoundSession] = {}
        for session in layout.list_sessions(run):
            place, known = Place(run.path.name, session), self._known.get(session)
            if known is not None and known.place == place and known.opening.t:  # without a time, it had no first line yet
                found[session] = known
                continue
            with _collect_refusals(refusals), run.open_directory(layout.session_directory(session)) as directory:
                found[session] = FoundSession(place, read_opening(session, directory))
        is_kept = all(each.opening.retention == "keep" for each in found.values())
        if found and is_kept and not is_live and len(refusals) == refused:
            final.add(run.path.name)
        return found

    def list_labels(
        self, root: Directory, family: str = "", after: str = "", most: int | None = None
    ) -> tuple[list[tuple[Place, ShelfLabel]], list[StoreError]]:
        """Labels in order of their sessions, and why others cannot be trusted. Skips sessions that have just been removed."""
        found, refusals = self.survey(root)
        labels: list[tuple[Place, ShelfLabel]] = []
        for each in self._families.get(family, []) if family else found.values():
            if most is not None and len(labels) >= most:
                break
            if each.place.session > after:
                with _collect_refusals(refusals), each.place.open(root) as directory:
                    labels.append((each.place, each.opening.label(live=lock.is_held(directory))))
        return labels, refusals

    def visit(self, root: Directory) -> Iterator[tuple[FoundSession, Directory]]:
        """Every session that can be trusted, with its open directory. Skips sessions that have just been removed."""
        for each in self.survey(root)[0].values():
            with _collect_refusals([]), each.place.open(root) as directory:
                yield each, directory

    def clear_dead_runs(self, root: Directory) -> None:
        """Clear the dead runs that may be empty or contain something other than kept sessions."""
        self.survey(root)
        for name in self._others:
            clear_dead_run(root, name)

    def find(self, root: Directory, session: str) -> Place:
        if place := self._find_known(root, session):
            return place
        final = frozenset(self._final)
        if place := self._find_known(root, session):  # a survey in another thread may have just made its run final
            return place
        refusals: list[StoreError] = []
        for name in layout.list_runs(root, final):
            if name not in final:
                with _collect_refusals(refusals), root.open_directory(name) as run:
                    if layout.has_session(run, session):
                        return Place(name, session)
        raise refusals[0] if refusals else unknown_session_error(session)

    def _find_known(self, root: Directory, session: str) -> Place | None:
        if known := self._known.get(session):
            with suppress(OSError, StoreError), root.open_directory(known.place.run) as run:
                if layout.has_session(run, session):
                    return known.place
        return None


def unknown_session_error(session: str) -> UnknownHandle:
    return UnknownHandle(layout.session_directory(session))


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


def has_many(root: Directory, most: int) -> bool:
    """Whether a root has more than `most` entries and sessions, or files for ten times as many. Stops counting there."""
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


class KeptFiles:
    """What the limits apply to. Outputs whose process died while writing them are removed when they are found."""

    def __init__(self, root: Directory, sessions: ShelfIndex) -> None:
        self.now = time.time()
        self.items: list[KeptItem] = []
        self.bytes: Counter[str] = Counter()
        self._places: dict[str, Place] = {}
        self._root = root
        for found, directory in sessions.visit(root):
            if found.opening.retention == "keep":
                self._add(found, directory)

    def _add(self, found: FoundSession, directory: Directory) -> None:
        session, files = found.place.session, layout.measure_files(directory)
        size = sum(size for size, _ in files.values())
        family = keep.family_of(found.opening.name)
        self._places[session] = found.place
        if lock.is_held(directory):
            outputs = ((name, each) for name, each in files.items() if handles.is_uuid(name))
            self.items += [KeptItem(session, id, used, size, family) for id, (size, used) in outputs]
        else:
            if unfinished := [name for name in files if name.endswith(PART)]:
                # What cannot be removed must not stop a session from starting.
                with suppress(OSError, StoreError), lock.hold_if_free(directory) as is_held:
                    size -= layout.remove_outputs(directory, unfinished) if is_held else 0
            self.items.append(KeptItem(session, "", _last_used(files), size, family))
        self.bytes[family] += size

    def remove(self, item: KeptItem) -> bool:
        """Removes an output in one step: a process that dies here leaves all of it or nothing. False if it has just been read."""
        place = self._places[item.session]
        if not item.id:
            return remove_place(self._root, place, unused_since=item.used)
        with suppress(FileNotFoundError), place.open(self._root) as directory:
            if directory.stat(item.id).st_mtime > item.used:
                return False
            directory.remove_file(item.id)
        return True

    def release_gone(self, quota: Quota) -> None:
        """Free the space of outputs that are gone, even if another process removed them and freed them only in its own quota."""
        for session in quota.sessions():
            if place := self._places.get(session):
                gone = quota.outputs(session)
                with suppress(FileNotFoundError), place.open(self._root) as directory:
                    # Check the final name twice, because an output may be completed after the first check. A list of
                    # files would not do: it may lack a file that is renamed during the listing.
                    gone = {id for id in gone if not any(layout.find(directory, each) for each in (id, id + PART, id))}
                for id in gone:
                    quota.release(session, id)


def _last_used(files: Mapping[str, tuple[int, float]]) -> float:
    return max((used for name, (_, used) in files.items() if name != layout.LOCK), default=0.0)


def remove_session(root: Directory, run: Directory, session: str, directory: Directory) -> None:
    """The caller holds its lock. If the directory contains other files, it stays, with those files."""
    name = read_opening(session, directory).name
    layout.sweep(directory)
    try:
        run.remove_directory(layout.session_directory(session))
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
            raise
    if name:
        index.forget(root, name, Place(run.path.name, session))


def remove_place(root: Directory, place: Place, *, unused_since: float | None = None) -> bool:
    """Remove a session, and its run if that is empty. False if another process holds it or used it after `unused_since`."""
    with (
        suppress(FileNotFoundError),  # another process was faster
        root.open_directory(place.run) as run,
        run.open_directory(layout.session_directory(place.session)) as directory,
        lock.hold_if_free(directory) as is_held,
    ):
        if not is_held or (unused_since is not None and _last_used(layout.measure_files(directory)) > unused_since):
            return False
        remove_session(root, run, place.session, directory)
    clear_dead_run(root, place.run)
    return True


def clear_dead_run(root: Directory, name: str) -> None:
    """Clear a run whose process has died. Does nothing while the run is alive."""
    with suppress(OSError, StoreError), root.open_directory(name) as run, lock.hold_if_free(run) as is_held:
        if is_held:
            clear_run(root, run)


def clear_run(root: Directory, run: Directory) -> None:
    """Remove the sessions that are free and not kept, and the run itself if it is empty. The caller holds its lock."""
    for session in layout.list_sessions(run):
        # What cannot be removed must not stop a process from starting or ending; the next start tries again.
        with suppress(OSError, StoreError), run.open_directory(layout.session_directory(session)) as directory:
            if read_opening(session, directory).retention != "keep":
                with lock.hold_if_free(directory) as is_held:
                    if is_held:
                        remove_session(root, run, session, directory)
    with suppress(OSError):
        if set(run.names()) <= {layout.LOCK}:
            with suppress(FileNotFoundError):
                run.remove_file(layout.LOCK)
            root.remove_directory(run.path.name)
