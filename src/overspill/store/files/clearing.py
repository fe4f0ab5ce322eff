"""Remove only what no session needs any more: names of exactly our layout that belong to this user and are not locked.

If two processes clear the same run, they meet each other's locks or find files gone. Both are fine. So is a process that opens
a session in what is being removed: it finds its lock gone, or the directory stays because the new lock is in it.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Collection, Mapping
from contextlib import suppress

from overspill import handles
from overspill.errors import StoreError
from overspill.store import keep
from overspill.store.files import index, layout, lock
from overspill.store.files.journal import read_opening
from overspill.store.files.layout import PART, Directory, Place
from overspill.store.files.survey import FoundSession, ShelfIndex
from overspill.store.keep import KeptItem


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


def remove_free_session(root: Directory, run: Directory, session: str, *, unused_since: float | None = None) -> bool:
    """False while another process holds it, or if it was used after `unused_since`."""
    with run.open_directory(layout.session_directory(session)) as directory, lock.hold_if_free(directory) as is_held:
        if not is_held or (unused_since is not None and last_used(layout.measure_files(directory)) > unused_since):
            return False
        remove_session(root, run, session, directory)
    return True


def remove_place(root: Directory, place: Place, *, unused_since: float | None = None) -> bool:
    """As `remove_free_session`, with the run if it is dead and nothing else is in it."""
    with suppress(FileNotFoundError), root.open_directory(place.run) as run:  # or another process was faster
        if not remove_free_session(root, run, place.session, unused_since=unused_since):
            return False
    clear_dead_run(root, place.run)
    return True


def remove_unfinished(root: Directory, place: Place) -> int:
    """Remove the outputs that a process was still writing when it ended. Returns how many bytes. Leaves a live session alone."""
    # What cannot be removed must not stop a session from starting.
    with suppress(OSError, StoreError), place.open(root) as directory, lock.hold_if_free(directory) as is_held:
        if is_held:
            return layout.remove_outputs(directory, [name for name in directory.names() if name.endswith(layout.PART)])
    return 0


def remove_empty_run(root: Directory, run: Directory) -> None:
    with suppress(FileNotFoundError):
        if set(run.names()) <= {layout.LOCK}:
            with suppress(FileNotFoundError):
                run.remove_file(layout.LOCK)
            root.remove_directory(run.path.name)


def clear_run(root: Directory, run: Directory) -> None:
    """Remove the sessions that are free and not kept, and the run itself if it is empty. The caller holds its lock."""
    for session in layout.list_sessions(run):
        # What cannot be removed must not stop a process from starting or ending; the next start tries again.
        with suppress(OSError, StoreError):
            if not _is_kept(run, session):
                remove_free_session(root, run, session)
    with suppress(OSError):
        remove_empty_run(root, run)


def clear_dead_run(root: Directory, name: str) -> None:
    """Does nothing while the run is alive."""
    with suppress(OSError, StoreError), root.open_directory(name) as run, lock.hold_if_free(run) as is_held:
        if is_held:
            clear_run(root, run)


def last_used(files: Mapping[str, tuple[int, float]]) -> float:
    """When a session was last used, from the files in it."""
    return max((used for name, (_, used) in files.items() if name != layout.LOCK), default=0.0)


def _is_kept(run: Directory, session: str) -> bool:
    with run.open_directory(layout.session_directory(session)) as directory:
        return read_opening(session, directory).retention == "keep"


class KeptFiles:
    """What processes were writing when they died goes as it is found."""

    def __init__(self, root: Directory, index: ShelfIndex) -> None:
        self.now = time.time()
        self.items: list[KeptItem] = []
        self.bytes: dict[str, int] = {}
        self.places: dict[str, Place] = {}
        self._root = root
        for found, directory in index.visit(root):
            if found.opening.retention == "keep":
                self._add(root, found, directory)

    def remove(self, item: KeptItem) -> bool:
        place = self.places[item.session]
        if item.id:
            return remove_output(self._root, place, item)
        return remove_place(self._root, place, unused_since=item.used)

    def _add(self, root: Directory, found: FoundSession, directory: Directory) -> None:
        place, files = found.place, layout.measure_files(directory)
        size = sum(size for size, _ in files.values())
        family = keep.family_of(found.opening.name)
        self.places[place.session] = place
        if lock.is_held(directory):
            self.items += [
                KeptItem(place.session, name, used, size, family) for name, (size, used) in files.items() if handles.is_uuid(name)
            ]
        else:
            if any(name.endswith(PART) for name in files):
                size -= remove_unfinished(root, place)
            self.items.append(KeptItem(place.session, "", last_used(files), size, family))
        self.bytes[family] = self.bytes.get(family, 0) + size


def remove_output(root: Directory, place: Place, item: KeptItem) -> bool:
    """Remove it in one step: a process that dies here leaves all of the output or nothing. False if it was read meanwhile."""
    with suppress(FileNotFoundError), place.open(root) as directory:
        if directory.stat(item.id).st_mtime > item.used:
            return False
        directory.remove_file(item.id)
    return True


def list_gone(root: Directory, place: Place, ids: Collection[str]) -> Collection[str]:
    """Those of these outputs that were removed. A list of files does not tell: one that is renamed meanwhile may be missing."""
    with suppress(FileNotFoundError), place.open(root) as directory:
        return [id for id in ids if not layout.has_output(directory, id)]
    return ids
