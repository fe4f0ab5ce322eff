"""Which sessions are live: a lock that the system drops when its holder dies, however it dies. A process id would be reused."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress

from overspill.store.files import layout
from overspill.store.files.layout import LOCK, Directory


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
    while not _try_lock(fd, fcntl.LOCK_EX):
        # Whoever only looks is in the way for a moment; whoever holds it, to stay.
        if not _try_lock(fd, fcntl.LOCK_SH):
            os.close(fd)
            return None
        fcntl.flock(fd, fcntl.LOCK_UN)
    return Lock(fd)


def is_held(directory: Directory) -> bool:
    """Looks with a shared lock, so that two who look at once do not take each other for the holder."""
    try:
        fd = directory.open_file(LOCK)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(fd, fcntl.LOCK_SH)
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


@contextmanager
def hold_alone(root: Directory) -> Generator[None]:
    """One at a time among this user's processes: starting a run, clearing up, giving out names. Leaves nothing behind.

    Where all may write, as in /tmp, another user could take any name we agreed on and hold it for ever. So the lock has no fixed
    name: it is made under a random one, in a directory that only we can enter, and you are alone when you hold all there are. Of
    two who each made one, the later finds the other's.
    """
    while True:
        with ExitStack() as locks:
            names = layout.list_lock_directories(root)
            if not names:
                # Whoever finds it first may be through with it, and have removed it, before we have opened it.
                with suppress(FileNotFoundError):
                    root.make_directory(layout.new_lock_directory()).close()
                continue
            # In the same order for all, so that no two wait for each other.
            found = [locks.enter_context(_wait_for(root, name)) for name in names]
            if None not in found and layout.list_lock_directories(root) == names:
                try:
                    yield
                finally:
                    for directory in found:
                        if directory is not None:
                            layout.remove_lock_directory(root, directory)
                return


@contextmanager
def _wait_for(root: Directory, name: str) -> Generator[Directory | None]:
    """None where the one before us removed it while we waited for it."""
    with ExitStack() as opened:
        try:
            directory = opened.enter_context(root.open_directory(name))
            fd = directory.open_file(LOCK, os.O_RDWR | os.O_CREAT)
        except FileNotFoundError:
            yield None
            return
        opened.callback(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)
        opened.callback(fcntl.flock, fd, fcntl.LOCK_UN)
        yield directory if _is_there(directory, fd) else None


def _is_there(directory: Directory, fd: int) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), directory.stat(LOCK))
    except FileNotFoundError:
        return False


def _try_lock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
