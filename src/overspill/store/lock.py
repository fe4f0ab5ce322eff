"""Who is alive: a lock the system drops when its holder dies, however it dies. A process id would be reused."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

from overspill.store.layout import LOCK, Directory


class Lock:
    """An exclusive hold on a directory's `lock` file."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pid = os.getpid()

    @property
    def inherited(self) -> bool:
        """True in a forked child: the hold is its parent's."""
        return self._pid != os.getpid()

    def release(self) -> None:
        # A forked child shares the lock itself: closing alone would leave it held by the child, unlocking there would take it
        # from the parent.
        if not self.inherited:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        os.close(self._fd)


def hold(directory: Directory) -> Lock:
    """The lock of a directory just made; at most somebody who only looks (`held`) has it for a moment."""
    fd = directory.make_file(LOCK)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return Lock(fd)


def take(directory: Directory) -> Lock | None:
    """The lock of a directory found, or None while somebody holds it."""
    fd = directory.open_file(LOCK, os.O_RDWR | os.O_CREAT)
    while not _locked(fd, fcntl.LOCK_EX):
        # Whoever only looks is in the way for a moment; whoever holds it, to stay.
        if not _locked(fd, fcntl.LOCK_SH):
            os.close(fd)
            return None
        fcntl.flock(fd, fcntl.LOCK_UN)
    return Lock(fd)


def held(directory: Directory) -> bool:
    """Looks with a shared lock, so that two who look at once do not take each other for the holder."""
    try:
        fd = directory.open_file(LOCK)
    except FileNotFoundError:
        return False
    try:
        return not _locked(fd, fcntl.LOCK_SH)
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


@contextmanager
def alone(root: Directory) -> Generator[None]:
    """One at a time among this user's processes: starting a run, clearing up, giving out names. Leaves no file behind."""
    name = f"overspill-{os.geteuid()}.lock"
    while True:
        fd = root.open_file(name, os.O_RDWR | os.O_CREAT)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            break
        # The one before us removed it while we waited for it: others now wait for a newer one.
        os.close(fd)
    try:
        yield
    finally:
        with suppress(OSError):
            root.remove_file(name)
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def _locked(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
