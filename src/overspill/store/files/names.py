"""Find the session of a name without looking at the others: one small file for each name, in the folder of hints.

What such a file says is a hint, which is checked against the session itself. It is written before its session is made and removed
after it, so a process that dies in between leaves a hint that leads nowhere, and never a session that nobody finds. If a hint is
wrong, the sessions are listed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress

import msgspec

from overspill import handles
from overspill.errors import StoreError
from overspill.store.files import hints, layout, lock
from overspill.store.files.journal import Opening
from overspill.store.files.layout import Directory
from overspill.store.files.sizes import SIZES
from overspill.store.files.survey import Place
from overspill.text import lenient_json

_MAX_HINT_BYTES = 256  # more than the longest one has
_IS_WHOLE = "whole"
"""The file that is in the folder when every session with a name has its hint, so that a name without one is new."""
_HINT = re.compile(r"name-[0-9a-f]{64}")


class NameEntry:
    """The file of one name, locked: no other process finds, makes or removes the session of that name meanwhile."""

    def __init__(self, folder: Directory, file: str, fd: int, *, is_made: bool) -> None:
        self._folder = folder
        self._file = file
        self._fd = fd
        data = os.pread(fd, _MAX_HINT_BYTES + 1, 0)
        self.is_new = is_made and not data
        self.place = None if self.is_new else _read_hint(data)
        """Where the session may be. None if the name is new, or if the file says nothing that can be believed."""

    def write(self, place: Place) -> None:
        if place == self.place:
            return
        self.place = None  # in case that half of it is written
        hints.rewrite(self._fd, msgspec.json.encode(place))
        self.place = place

    def remove(self) -> None:
        with suppress(FileNotFoundError):
            self._folder.remove_file(self._file)


def is_whole(folder: Directory) -> bool:
    try:
        os.close(folder.open_file(_IS_WHOLE))
    except FileNotFoundError:
        return False
    return True


def fill(folder: Directory, sessions: Iterable[tuple[Place, Opening]], *, is_all: bool) -> None:
    """Write the hints that are missing. If several sessions have a name, the first of those that are kept gets it."""
    chosen: dict[str, Place] = {}
    for place, opening in sorted(sessions, key=lambda found: (found[1].retention != "keep", found[0].session)):
        if opening.name:
            chosen.setdefault(opening.name, place)
    for name, place in chosen.items():
        with _open_now(folder, name, makes=True) as entry:
            if entry is not None and entry.place is None:
                entry.write(place)
    if is_all:
        with suppress(FileExistsError):
            os.close(folder.make_file(_IS_WHOLE))


@contextmanager
def hold(root: Directory, folder: Directory, name: str, deadline: float) -> Generator[NameEntry]:
    """Raises StoreError at the deadline, and FileNotFoundError if the folder was removed."""
    file = _file_of(name)
    while True:
        fd, is_made = hints.open_or_make(folder, file)
        try:
            lock.lock_before(fd, deadline, root)
            if lock.is_there(folder, fd, file):
                yield NameEntry(folder, file, fd, is_made=is_made)
                return
        finally:
            hints.unlock(fd)


def forget(root: Directory, name: str, place: Place) -> None:
    """Remove the hint to a session that was removed, and the folder with the last one. If that fails, it leads nowhere."""
    with suppress(OSError, StoreError), hints.open_folder(root) as folder:
        if folder is None:
            return
        with _open_now(folder, name, makes=False) as entry:
            if entry is not None and entry.place == place:
                entry.remove()
    remove_folder_if_empty(root)


def remove_folder_if_empty(root: Directory) -> None:
    with suppress(OSError, StoreError), hints.open_folder(root) as folder:
        if folder is None:
            return
        with os.scandir(folder.fd) as found:
            if any(_HINT.fullmatch(each.name) for each in found):
                return
        # Another process may make a hint meanwhile. Then the folder stays, and the next process that needs it fills it again.
        for file in (_IS_WHOLE, SIZES):
            with suppress(FileNotFoundError):
                folder.remove_file(file)
        root.remove_directory(folder.path.name)


@contextmanager
def _open_now(folder: Directory, name: str, *, makes: bool) -> Generator[NameEntry | None]:
    """None if there is none, or while another process has it."""
    file = _file_of(name)
    with hints.hold(folder, file, makes=makes) as held:
        yield NameEntry(folder, file, held[0], is_made=held[1]) if held else None


def _file_of(name: str) -> str:
    return f"name-{hashlib.sha256(name.encode()).hexdigest()}"


def _read_hint(data: bytes) -> Place | None:
    place = lenient_json.parse(data, Place) if len(data) <= _MAX_HINT_BYTES else None
    return place if place is not None and layout.is_run(place.run) and handles.is_uuid(place.session) else None
