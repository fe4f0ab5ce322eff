"""Store outputs as files below one root, which many processes share. Each process has its own run."""

from __future__ import annotations

import shutil
import tempfile
import time
from functools import cache
from pathlib import Path
from threading import RLock

from overspill.store import rules
from overspill.store.files import clearing, layout, lock
from overspill.store.files.expiry import measure_kept, remove_output
from overspill.store.files.failures import explain_failures
from overspill.store.files.layout import Directory, Root
from overspill.store.files.run import Allowance, StoreRun
from overspill.store.files.shelf import FileShelf, LiveFileShelf
from overspill.store.files.survey import Place, find, read_label, survey, unknown_session_error
from overspill.store.keeping import HOUR, KeepGuard
from overspill.store.protocols import Expired, KeepLimits, Retention, ShelfLabel
from overspill.store.quota import GIB
from overspill.store.rules import KeptItem


class FileStore:
    """Nothing is created before the first `open_shelf`. `close`, or the end of the process, removes what is not to be kept."""

    def __init__(self, root: Path | None = None, *, run_bytes: int = 10 * GIB, sweep_seconds: float = HOUR) -> None:
        self._sweep_seconds = sweep_seconds
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
        with self._mutex, explain_failures(f"open a session in {self.root}"), self.place.make() as root, lock.hold_alone(root):
            allowance = Allowance(limits, self._expire(root, limits).bytes) if limits else None
            kept = _find_by_name(root, name) if name else None
            run = self._ensure_run(root)
            try:
                return (
                    _reopen(root, kept, run, name, allowance) if kept else run.create_shelf(session, name, retention, allowance)
                )
            except BaseException:
                run.end_if_idle()
                raise

    def read_shelf(self, session: str) -> FileShelf:
        rules.check_id(session)
        with explain_failures(f"read session {session}"):
            if not self.root.exists():
                raise unknown_session_error(session)
            with self.place.open() as root, root.open_directory(find(root, session).run) as run:
                return FileShelf(session, run.open_directory(layout.session_directory(session)))

    def label(self, session: str) -> ShelfLabel:
        rules.check_id(session)
        with explain_failures(f"read session {session}"):
            if not self.root.exists():
                raise unknown_session_error(session)
            with self.place.open() as root:
                return read_label(root, find(root, session))

    def shelves(self) -> list[ShelfLabel]:
        with explain_failures(f"list {self.root}"):
            if not self.root.exists():
                return []
            with self.place.open() as root:
                return sorted((label for _, label in survey(root).shelves), key=lambda label: label.session)

    def remove_shelf(self, session: str) -> None:
        rules.check_id(session)
        with explain_failures(f"remove session {session}"):
            if not self.root.exists():
                raise unknown_session_error(session)
            with self.place.open() as root, lock.hold_alone(root):
                if not self._remove_place(root, find(root, session)):
                    raise rules.still_live_error(session)

    def empty_shelf(self, session: str) -> int:
        rules.check_id(session)
        with explain_failures(f"empty session {session}"):
            if not self.root.exists():
                raise unknown_session_error(session)
            with (
                self.place.open() as root,
                root.open_directory(find(root, session).run) as run,
                run.open_directory(layout.session_directory(session)) as directory,
            ):
                removed = layout.list_outputs(directory)
                for id in removed:
                    directory.remove_file(id)
        if self._run:
            for id in removed:
                self._run.quota.release(session, id)
        return len(removed)

    def expire(self, limits: KeepLimits) -> Expired:
        with explain_failures(f"apply the keep limits in {self.root}"):
            if not self.root.exists():
                return Expired([], [], 0)
            with self.place.open() as root, lock.hold_alone(root):
                return self._expire(root, limits)

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

    def _ensure_run(self, root: Directory) -> StoreRun:
        """This process's run. The first call starts it and removes what dead runs left."""
        if self._run is None or not self._run.usable:
            for name in layout.list_runs(root):
                clearing.clear_dead_run(root, name)
            guard = KeepGuard(self.expire, sweep_seconds=self._sweep_seconds)
            self._run = StoreRun(self.place, run_bytes=self._run_bytes, mutex=self._mutex, guard=guard)
        return self._run

    def _expire(self, root: Directory, limits: KeepLimits) -> Expired:
        """Called while no other process of this user opens or removes anything."""
        run = self._run
        held = {session: run.quota.outputs(session) for session in run.quota.sessions()} if run else {}
        content = measure_kept(root)
        doomed = rules.expired_items(content.items, content.bytes, limits, now=time.time())
        removed = [item for item in doomed if self._remove_item(root, content.places[item.session], item)]
        gone = {item.id for item in removed}
        for session, outputs in content.outputs.items():
            # Including what another process has removed, which would otherwise be freed only in that process's quota.
            for id in held.get(session, set()) - (outputs - gone):
                if run:
                    run.quota.release(session, id)
        return Expired(
            sessions=[item.session for item in removed if not item.id],
            outputs=[item.id for item in removed if item.id],
            bytes=content.bytes - sum(item.bytes for item in removed),
        )

    def _remove_item(self, root: Directory, place: Place, item: KeptItem) -> bool:
        return remove_output(root, place, item) if item.id else self._remove_place(root, place)

    def _remove_place(self, root: Directory, place: Place) -> bool:
        with root.open_directory(place.run) as run:
            if not clearing.remove_free_session(run, place.session):
                return False
        if self._run:
            self._run.quota.release(place.session)
        clearing.clear_dead_run(root, place.run)
        return True


def _find_by_name(root: Directory, name: str) -> Place | None:
    found = survey(root)
    for place, label in found.shelves:
        if label.name == name and label.retention == "keep":
            return place
        if label.name == name and label.live:
            raise rules.name_in_use_error(name)
    # A shelf that cannot be trusted may have this name. Opening a second one would look as if everything had been lost.
    if found.refusals:
        raise found.refusals[0]
    return None


def _reopen(root: Directory, place: Place, run: StoreRun, name: str, allowance: Allowance | None) -> LiveFileShelf:
    with root.open_directory(place.run) as parent:
        shelf = run.reopen_shelf(place.session, parent.open_directory(layout.session_directory(place.session)), allowance)
    if shelf is None:
        raise rules.name_in_use_error(name)
    return shelf


def file_store(directory: str | None, run_bytes: int) -> FileStore:
    """One store for each root in a process, so that its sessions share a run."""
    path = None if directory is None else Path(directory)
    return _shared_store(path, None if path is None or path.is_absolute() else Path.cwd(), run_bytes)


@cache
def _shared_store(root: Path | None, _cwd: Path | None, run_bytes: int) -> FileStore:
    return FileStore(root, run_bytes=run_bytes)
