"""Store outputs as files below one root, which many processes share. Each process has its own run."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock, Thread

from overspill import handles
from overspill.errors import StoreError
from overspill.store import keep, rules
from overspill.store.files import index, layout, lock, survey
from overspill.store.files.layout import Directory, Place, Root, explain_failures
from overspill.store.files.run import NamedOpening, StoreRun
from overspill.store.files.shelf import FileShelf, LiveFileShelf, read_opening
from overspill.store.files.survey import KeptFiles, ShelfIndex, has_many, unknown_session_error
from overspill.store.keep import Measurement, Opening
from overspill.store.protocols import Expired, KeepLimits, Retention, ShelfLabel
from overspill.store.quota import GIB, HOUR, KeepGuard

MAX_MEASURED_FIRST = 200
"""Runs and sessions in a store that a session waits for when it opens. Larger stores are measured in the background."""
_MAX_WAIT_SECONDS = 30.0  # for a process that assigns a name, which takes it a fraction of a second


class FileStore:
    """Nothing is created before the first `open_shelf`. `close`, or the end of the process, removes what is not to be kept."""

    def __init__(
        self,
        root: Path | None = None,
        *,
        run_bytes: int = 10 * GIB,
        sweep_seconds: float = HOUR,
        max_wait_seconds: float = _MAX_WAIT_SECONDS,
    ) -> None:
        self._sweep_seconds = sweep_seconds
        self._index = ShelfIndex()
        self._max_wait_seconds = max_wait_seconds
        self._root = Root.at(root) if root else None
        self._run_bytes = run_bytes
        self._run: StoreRun | None = None
        self._mutex = RLock()

    @property
    def url(self) -> str:
        return self.root.as_uri()

    @property
    def root(self) -> Path:
        return self.place.path

    @property
    def place(self) -> Root:
        return self._root or Root(Path(tempfile.gettempdir()))

    def open_shelf(
        self, session: str, *, name: str = "", retention: Retention = "session", limits: KeepLimits | None = None
    ) -> LiveFileShelf:
        rules.check_id(session)
        rules.check_name(name)
        with self._mutex, explain_failures(f"open a session in {self.root}"), self.place.make() as root:
            run = self._ensure_run(root, limits)
            with run.keep_for_attempts():
                wanted = Opening.now(session, name, retention)
                if not name:
                    return run.create_shelf(wanted, limits)
                return NamedOpening(self._index, root, run, wanted, limits, self._max_wait_seconds).open()

    def read_shelf(self, session: str) -> FileShelf:
        with self._open_root("read", session) as root:
            return FileShelf(session, self._open_session(root, session))

    def label(self, session: str) -> ShelfLabel:
        with self._open_root("read", session) as root, self._open_session(root, session) as directory:
            return read_opening(session, directory).label(live=lock.is_held(directory))

    def shelves(self, *, family: str = "", after: str = "", most: int | None = None) -> list[ShelfLabel]:
        with explain_failures(f"list {self.root}"):
            if not self.root.exists():
                return []
            with self.place.open() as root:
                return [label for _, label in self._index.list_labels(root, family, after, most)[0]]

    def find_recorded(self, ending: str) -> list[tuple[str, bytes]]:
        return []  # reading a journal on this machine takes no longer than an index would

    def remove_shelf(self, session: str) -> None:
        with self._open_root("remove", session) as root:
            if not survey.remove_place(root, self._find(root, session)):
                raise rules.still_live_error(session)
        if self._run:
            self._run.quota.release(session)

    def empty_shelf(self, session: str) -> int:
        with self._open_root("empty", session) as root, self._open_session(root, session) as directory:
            removed = [name for name in directory.names() if handles.is_uuid(name)]
            for id in removed:
                directory.remove_file(id)
                if self._run:
                    self._run.quota.release(session, id)
        return len(removed)

    def expire(self, limits: KeepLimits, *, family: str | None = None) -> Expired:
        with explain_failures(f"apply the keep limits in {self.root}"):
            if not self.root.exists():
                return Expired([], [], 0)
            with self.place.open() as root:
                kept = KeptFiles(root, self._index)
                expired = keep.expire(kept.items, kept.bytes, kept.remove, limits, now=kept.now, family=family)
                if self._run:
                    kept.release_gone(self._run.quota)
                return expired

    def check_writable(self) -> None:
        """Raise StoreError if nothing can be written in the root, which must exist. Leaves nothing behind."""
        with explain_failures(f"write to {self.root}"), self.place.open() as root:
            with index.open_index(root):
                pass
            directory, hold = lock.make_held(root, lock.new_lock_directory)
            with directory:
                try:
                    with open(directory.open_file(layout.LOCK, os.O_WRONLY), "wb", buffering=0) as file:
                        file.write(b"\n")
                finally:
                    lock.remove_lock_directory(root, directory)
                    hold.release()

    def free(self) -> int:
        with self._mutex, explain_failures(f"measure {self.root}"):
            place = next(part for part in (self.root, *self.root.parents) if part.exists())
            disk = shutil.disk_usage(place).free
            if self._run and self._run.usable:
                return min(self._run.quota.left, disk)
            return min(self._run_bytes, disk // 2)

    def close(self) -> None:
        with self._mutex:
            if self._run:
                self._run.end()
                self._run = None

    @contextmanager
    def _open_root(self, doing: str, session: str) -> Generator[Directory]:
        """Open the root. Errors say what was being done, and with which session."""
        rules.check_id(session)
        with explain_failures(f"{doing} session {session}"):
            if not self.root.exists():
                raise unknown_session_error(session)
            with self.place.open() as root:
                yield root

    def _open_session(self, root: Directory, session: str) -> Directory:
        try:
            return self._find(root, session).open(root)
        except FileNotFoundError:
            raise unknown_session_error(session) from None

    def _find(self, root: Directory, session: str) -> Place:
        """The place of a session. Sessions of this process are found without listing others."""
        run = self._run
        if run is not None and run.usable and run.has_session(session):
            return Place(run.name, session)
        return self._index.find(root, session)

    def _ensure_run(self, root: Directory, limits: KeepLimits | None) -> StoreRun:
        """This process's run. The first call starts it. In a small store, the limits are applied and what dead runs left is
        removed before a session opens; in a large one, soon afterwards, in a thread."""
        run = self._run
        if run is not None and run.usable:
            if limits and run.guard.is_due(limits) and not has_many(root, MAX_MEASURED_FIRST):
                run.guard.apply(limits)
            return run
        guard = KeepGuard(self._tidy, sweep_seconds=self._sweep_seconds)
        if has_many(root, MAX_MEASURED_FIRST):
            self._begin_in_large_store(root, guard, limits)
        else:
            guard.apply(limits) if limits else self._clear()
        self._run = StoreRun(self.place, run_bytes=self._run_bytes, mutex=self._mutex, guard=guard)
        return self._run

    def _begin_in_large_store(self, root: Directory, guard: KeepGuard, limits: KeepLimits | None) -> None:
        measured: Measurement | None = None
        with suppress(OSError, StoreError), index.open_index(root) as found:
            measured = None if found is None else found.recall()
        age = float("inf") if measured is None else measured.age(time.time())
        if limits is None:
            if age >= self._sweep_seconds:
                Thread(target=self._clear, name="overspill-clear-runs", daemon=True).start()
            return
        if measured is not None:
            guard.recall(measured, limits, due_seconds=self._sweep_seconds - age)
        if age > keep.DAY:
            guard.overdue = limits

    def _tidy(self, limits: KeepLimits, *, family: str | None = None) -> Expired:
        """Apply the limits, and record for later processes what is left."""
        left = self.expire(limits, family=family)
        with suppress(OSError, StoreError), self.place.open() as root:
            self._index.clear_dead_runs(root)
            if family is None and has_many(root, MAX_MEASURED_FIRST):
                with index.open_index(root, makes=True) as found:
                    if found is not None:
                        found.note(Measurement(limits, left.families, time.time()))
        return left

    def _clear(self) -> None:
        """Remove outputs whose process died while writing them, as the keep limits do, and everything not meant to be kept."""
        with suppress(OSError, StoreError), self.place.open() as root:  # the next process tries again
            KeptFiles(root, self._index)
            self._index.clear_dead_runs(root)
