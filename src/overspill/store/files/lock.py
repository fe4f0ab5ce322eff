"""Find out which sessions are live, by a lock that the system releases when its holder dies. Process ids would be reused."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress

from overspill.errors import StoreError
from overspill.store.files import layout
from overspill.store.files.layout import LOCK, Directory
from overspill.text.regex import regex

_MAX_PAUSE_SECONDS = 0.05  # between two tries for a lock that another process holds
_LOCK_DIRECTORY = regex(r"overspill-lock-[0-9a-f]{12}")


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


def make_held(above: Directory, new_name: Callable[[], str]) -> tuple[Directory, Lock]:
    """Make a directory and lock it. If another process removes it as abandoned before it is locked, make another one."""
    while True:
        with ExitStack() as undo, suppress(FileNotFoundError):
            directory = undo.enter_context(above.make_directory(new_name()))
            undo.callback(remove_lock_directory, above, directory)
            try:
                fd = directory.make_file(LOCK)
            except FileExistsError:  # the other process has made it to check whether it is held
                fd = directory.open_file(LOCK, os.O_RDWR)
            undo.callback(os.close, fd)
            fcntl.flock(fd, fcntl.LOCK_EX)
            if is_there(directory, fd):
                undo.pop_all()
                return directory, Lock(fd)
        if not os.fstat(above.fd).st_nlink:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(above.path))


def take(directory: Directory, *, until: float = 0.0) -> Lock | None:
    """Lock an existing directory. None if another process holds it until `until`. Raises FileNotFoundError if it is gone."""
    while True:
        fd = directory.open_file(LOCK, os.O_RDWR | os.O_CREAT)
        pause = 0.001
        while not try_lock(fd):
            # A process that only checks blocks for a moment, a holder for as long as it lives.
            if try_lock(fd, fcntl.LOCK_SH):
                fcntl.flock(fd, fcntl.LOCK_UN)
            elif time.monotonic() >= until:
                os.close(fd)
                return None
            else:
                time.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE_SECONDS)
        if is_there(directory, fd):
            return Lock(fd)
        os.close(fd)  # its holder has removed it, and with it perhaps the directory


@contextmanager
def hold_if_free(directory: Directory) -> Generator[bool]:
    """Hold the lock if no other process does. Yields whether it is held. Raises FileNotFoundError if it was removed."""
    hold = take(directory)
    try:
        yield hold is not None
    finally:
        if hold is not None:
            hold.release()


def is_held(directory: Directory) -> bool:
    """Checks with a shared lock, so that two processes that check at the same time do not mistake each other for the holder."""
    try:
        fd = directory.open_file(LOCK)
    except FileNotFoundError:
        return False
    try:
        return not try_lock(fd, fcntl.LOCK_SH)
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


@contextmanager
def hold_alone(root: Directory, *, within: float) -> Generator[None]:
    """Let one of this user's processes at a time assign names. Leaves nothing behind. Raises StoreError after `within` seconds,
    since a process that holds it may be stopped.

    In a directory that everyone may write to, like /tmp, another user could take any fixed name and hold it forever. So the lock
    has a random name, in a directory that only this user can enter, and a process is alone when it holds all such locks. If two
    processes each make one, the later finds the other's.
    """
    deadline = time.monotonic() + within
    while True:
        with ExitStack() as locks:
            if held := _take_all(root, deadline, locks):
                try:
                    yield
                finally:
                    for directory in held:
                        remove_lock_directory(root, directory)
                return


def _take_all(root: Directory, deadline: float, locks: ExitStack) -> list[Directory]:
    """The directories whose locks were taken. Empty if none existed (this makes one), or if one was removed during the wait."""
    found: list[Directory] = []
    with suppress(FileNotFoundError):
        if not (names := _list_lock_directories(root)):
            root.make_directory(new_lock_directory()).close()
        for name in names:  # all processes use the same order, so that no two wait for each other
            found.append(locks.enter_context(root.open_directory(name)))
            if (hold := take(found[-1], until=deadline)) is None:  # its holder may be stopped
                raise too_long_error(root)
            locks.callback(hold.release)
        if _list_lock_directories(root) == names:
            return found
    return []


def _list_lock_directories(root: Directory) -> list[str]:
    """Only directories that you alone can enter: others may have made one with such a name, or hold a lock in it."""
    found = ((name, layout.find(root, name)) for name in root.names() if _LOCK_DIRECTORY.fullmatch(name))
    own = ((name, each.st_mode) for name, each in found if each is not None and each.st_uid == os.geteuid())
    return [name for name, mode in own if stat.S_ISDIR(mode) and not mode & 0o077]


def new_lock_directory() -> str:
    return f"overspill-lock-{secrets.token_hex(6)}"


def remove_lock_directory(root: Directory, directory: Directory) -> None:
    # The directory stays if another process has already made the next lock in it. That process then removes it.
    with suppress(OSError):
        directory.remove_file(LOCK)
        root.remove_directory(directory.path.name)


def too_long_error(root: Directory) -> StoreError:
    return StoreError(
        f"Could not open a named session in {root.path}: another process is taking too long to open one there. "
        "If that process is stopped, continue or end it. A session without a name can be opened meanwhile."
    )


def is_there(directory: Directory, fd: int) -> bool:
    """Whether this open file is still the lock."""
    try:
        return os.path.samestat(os.fstat(fd), directory.stat(LOCK))
    except FileNotFoundError:
        return False


def try_lock(fd: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
