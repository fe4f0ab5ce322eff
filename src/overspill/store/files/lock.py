"""Tell which sessions are live, by a lock that the system releases however its holder dies. A process id would be reused."""

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
        """True in a forked child, whose parent holds the lock."""
        return self._pid != os.getpid()

    def release(self) -> None:
        # A forked child shares the lock. Closing it without unlocking here would leave the child holding it; unlocking in the
        # child would take it from the parent.
        if not self.inherited:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        os.close(self._fd)


def hold(directory: Directory) -> Lock:
    """Lock a directory that was just created. At most, a process that only checks (`is_held`) has it for a moment."""
    fd = directory.make_file(LOCK)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return Lock(fd)


def take(directory: Directory) -> Lock | None:
    """Lock an existing directory. Returns None while another process holds it."""
    fd = directory.open_file(LOCK, os.O_RDWR | os.O_CREAT)
    while not _try_lock(fd, fcntl.LOCK_EX):
        # A process that only checks is in the way for a moment, a holder for good.
        if not _try_lock(fd, fcntl.LOCK_SH):
            os.close(fd)
            return None
        fcntl.flock(fd, fcntl.LOCK_UN)
    return Lock(fd)


def is_held(directory: Directory) -> bool:
    """Checks with a shared lock, so that two processes that check at the same time do not mistake each other for the holder."""
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
    """Let one of this user's processes at a time start a run, clear up or assign names. Leaves nothing behind.

    In a directory that everyone may write to, like /tmp, another user could take any fixed name and hold it forever. So the lock
    has a random name, in a directory that only this user can enter, and a process is alone when it holds all such locks. If two
    processes each make one, the later finds the other's.
    """
    while True:
        with ExitStack() as locks:
            names = layout.list_lock_directories(root)
            if not names:
                # Another process may find it, use it and remove it before we have opened it.
                with suppress(FileNotFoundError):
                    root.make_directory(layout.new_lock_directory()).close()
                continue
            # All processes use the same order, so that no two wait for each other.
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
    """None if the process before us removed it while we waited."""
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
