"""A folder in the root with what saves later processes a look at every session. All of it can be made again from the sessions.

It has a fixed name, so that it is found without listing the root. Only this user can enter it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress

from overspill.store.files import layout, lock
from overspill.store.files.layout import Directory


@contextmanager
def open_folder(root: Directory, *, makes: bool = False) -> Generator[Directory | None]:
    """None if there is none, or if another user has something in its place: in /tmp, everyone may take any name."""
    name = layout.hints_directory()
    with ExitStack() as opened:
        folder: Directory | None = None
        if makes:
            with suppress(FileExistsError):
                folder = root.make_directory(name)
        if folder is None and layout.is_ours(root, name):
            folder = root.open_directory(name)
        yield None if folder is None else opened.enter_context(folder)


def open_or_make(folder: Directory, file: str) -> tuple[int, bool]:
    """The file, open for reading and writing, and whether it was made now."""
    while True:
        with suppress(FileNotFoundError):
            return folder.open_file(file, os.O_RDWR), False
        with suppress(FileExistsError):
            return folder.make_file(file), True


@contextmanager
def hold(folder: Directory, file: str, *, makes: bool, within: float = 0.0) -> Generator[tuple[int, bool] | None]:
    """The file as `open_or_make` has it, locked. None if there is none, or if another process has it for so many seconds."""
    try:
        fd, is_made = open_or_make(folder, file) if makes else (folder.open_file(file, os.O_RDWR), False)
    except FileNotFoundError:
        yield None
        return
    try:
        is_held = lock.try_lock_within(fd, within) and lock.is_there(folder, fd, file)
        yield (fd, is_made) if is_held else None
    finally:
        unlock(fd)


def unlock(fd: int) -> None:
    fcntl.flock(fd, fcntl.LOCK_UN)  # a forked child may have it open too
    os.close(fd)


def rewrite(fd: int, data: bytes) -> None:
    """The caller holds its lock. A process that dies meanwhile leaves what cannot be parsed."""
    os.ftruncate(fd, 0)
    view = memoryview(data)
    while view:
        view = view[os.pwrite(fd, view, len(data) - len(view)) :]
