"""What one process creates in a root: a directory, locked while the process lives, and a quota for all its shelves."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from threading import RLock

from overspill.errors import StoreError
from overspill.store import keep, rules
from overspill.store.files import clearing, index, layout, lock
from overspill.store.files.journal import Journal
from overspill.store.files.layout import Directory, Root
from overspill.store.files.shelf import HeldDirectory, LiveFileShelf
from overspill.store.keep import Opening
from overspill.store.protocols import KeepLimits
from overspill.store.quota import KeepGuard, Quota


class StoreRun:
    def __init__(self, root: Root, *, run_bytes: int, mutex: RLock, guard: KeepGuard) -> None:
        self.guard = guard
        with ExitStack() as undo:
            self._root = undo.enter_context(root.open())
            self.quota = Quota(min(run_bytes, shutil.disk_usage(root.path).free // 2))
            self._directory, self._lock = lock.make_held(self._root, _name)
            undo.pop_all()
        self._shelves: set[LiveFileShelf] = set()
        self._mutex = mutex
        self._attempts = 0
        self._over = False
        atexit.register(self.end)

    @property
    def name(self) -> str:
        return self._directory.path.name

    @property
    def usable(self) -> bool:
        """False after it has ended, in a forked child, and if its directory was removed."""
        return not self._over and not self._lock.inherited and os.fstat(self._directory.fd).st_nlink > 0

    def has_session(self, session: str) -> bool:
        return layout.has_session(self._directory, session)

    def create_shelf(self, wanted: Opening, limits: KeepLimits | None) -> LiveFileShelf:
        session = wanted.session
        with ExitStack() as undo:
            directory, hold = lock.make_held(self._directory, lambda: layout.session_directory(session))
            undo.enter_context(directory)
            undo.callback(hold.release)
            undo.callback(clearing.remove_session, self._root, self._directory, session, directory)
            journal = Journal.create(directory)
            undo.callback(journal.close, durable=False)
            journal.append(wanted.line)
            undo.pop_all()
        return self._make_shelf(wanted, HeldDirectory(directory, hold, journal), limits)

    def reopen_shelf(self, session: str, directory: Directory, name: str, limits: KeepLimits | None) -> LiveFileShelf:
        """Reopen a kept shelf, which stays in its place and stays kept. Raises NameInUse while another process holds it, and
        FileNotFoundError if it was removed."""
        with ExitStack() as undo:
            undo.enter_context(directory)
            hold = lock.take(directory)
            if hold is None:
                raise rules.name_in_use_error(name)
            undo.callback(hold.release)
            journal = Journal.reopen(directory)
            undo.pop_all()
        return self._make_shelf(Opening(session, name, "keep"), HeldDirectory(directory, hold, journal), limits)

    @contextmanager
    def keep_for_attempts(self) -> Generator[None]:
        """A shelf that is given up must not end what the next attempt to open one needs. Called with the mutex held."""
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
        with self._mutex:
            if self._over:
                return
            self._over = True
            atexit.unregister(self.end)
            with ExitStack() as last:
                last.callback(self._root.close)
                last.callback(self._directory.close)
                last.callback(self._lock.release)
                if not self._lock.inherited:
                    last.callback(self._note_written)
                    last.callback(clearing.clear_run, self._root, self._directory)
                for shelf in self._shelves:
                    last.callback(shelf.close)

    def _note_written(self) -> None:
        if changes := self.guard.finish():
            with suppress(OSError, StoreError), index.open_index(self._root) as found:
                if found is not None:
                    found.add(changes)

    def _make_shelf(self, opening: Opening, held: HeldDirectory, limits: KeepLimits | None) -> LiveFileShelf:
        family = keep.family_of(opening.name)
        quota = self.guard.make_quota(self.quota, opening.session, family, opening.retention, limits)
        self._shelves.add(shelf := LiveFileShelf(opening, held, quota, self._mutex, self._forget_shelf))
        return shelf

    def _forget_shelf(self, shelf: LiveFileShelf) -> None:
        """Called with the mutex held."""
        self._shelves.discard(shelf)
        self.guard.leave(shelf.session)
        if shelf.retention == "session":
            clearing.remove_session(self._root, self._directory, shelf.session, shelf.directory)
            self.quota.release(shelf.session)
        self._end_if_idle()


def _name() -> str:
    seed = f"{os.getpid()} {time.time_ns()} {uuid.uuid4()}"
    return f"overspill-{hashlib.sha256(seed.encode()).hexdigest()[:12]}"
