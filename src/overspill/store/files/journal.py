"""A session's journal file: whole lines, one writer, and a first line that describes the shelf."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock

from overspill.errors import StoreError, StoreFull
from overspill.store import rules
from overspill.store.files import layout
from overspill.store.files.failures import explain_failures, to_store_error
from overspill.store.files.layout import Directory
from overspill.store.keep import Opening

_MAX_FIRST_LINE_BYTES = 4096  # several times what the longest name needs
_BLOCK = 1 << 16


_MODE, _MODE_IF_LINES_ARE_MISSING = 0o600, 0o700


class Journal:
    """If a line cannot be written, the mode of the file says so until it can: a full disk has no room for more."""

    def __init__(self, fd: int, directory: Directory) -> None:
        self.may_lack_lines = stat.S_IMODE(os.fstat(fd).st_mode) == _MODE_IF_LINES_ARE_MISSING
        """A process could not write everything, and died."""
        self._is_marked = False
        self._fd = fd
        self._closed = False
        self._path = directory.path / layout.JOURNAL
        self._end = _end_of_whole_lines(fd)
        self._mutex = Lock()

    @classmethod
    def create(cls, directory: Directory) -> Journal:
        return cls(directory.make_file(layout.JOURNAL, os.O_APPEND), directory)

    @classmethod
    def reopen(cls, directory: Directory) -> Journal:
        fd = directory.open_file(layout.JOURNAL, os.O_RDWR | os.O_APPEND)
        # The keep limits use its modification time, and opening a session again counts as using it.
        os.utime(fd)
        return cls(fd, directory)

    def append(self, line: bytes) -> None:
        with self._mutex:
            if self._closed:
                raise rules.closed_error("shelf")
            try:
                written = self._write(line)
            except OSError as error:
                self._mark(_MODE_IF_LINES_ARE_MISSING)
                raise to_store_error(f"write to {self._path}", error) from error
            if written < len(line):
                self._mark(_MODE_IF_LINES_ARE_MISSING)
                # Readers would otherwise see its complete lines, and again when the caller retries the write.
                with suppress(OSError):
                    os.ftruncate(self._fd, self._end)
                raise StoreFull(f"Could not write to {self._path}: the disk is full. Free space or set another storeDir.")
            self._end += written
            if self._is_marked and not self.may_lack_lines:
                self._mark(_MODE)

    def _mark(self, mode: int) -> None:
        with suppress(OSError):
            os.fchmod(self._fd, mode)
            self._is_marked = mode != _MODE

    def _write(self, line: bytes) -> int:
        found = os.fstat(self._fd)
        if not found.st_nlink:
            raise StoreError(f"{self._path} was removed by another program. Open a new session.")
        if found.st_size > self._end:
            # The start of a line that was cut off by a full disk or the death of a process. No reader has ever seen it.
            os.ftruncate(self._fd, self._end)
        return os.write(self._fd, line)

    def close(self, *, durable: bool) -> None:
        with self._mutex:
            self._closed = True
            try:
                if durable:
                    os.fsync(self._fd)
            finally:
                os.close(self._fd)


def whole_lines(directory: Directory, start: int = 0) -> Iterator[bytes]:
    with explain_failures(f"read {directory.path / layout.JOURNAL}"), open(directory.open_file(layout.JOURNAL), "rb") as file:
        file.seek(start)
        for line in file:
            # Not `continue`: the rest of the line, which its writer may add meanwhile, would look like another line.
            if not line.endswith(b"\n"):
                return
            yield line


def read_opening(session: str, directory: Directory) -> Opening:
    """Without a time if it was never finished, or not yet."""
    try:
        fd = directory.open_file(layout.JOURNAL)
    except FileNotFoundError:
        return Opening(session)
    try:
        line, ended, _ = os.pread(fd, _MAX_FIRST_LINE_BYTES, 0).partition(b"\n")
        return Opening.parse(session, line) if ended else Opening(session)
    finally:
        os.close(fd)


def _end_of_whole_lines(fd: int) -> int:
    end = os.fstat(fd).st_size
    while end:
        start = max(0, end - _BLOCK)
        if (found := os.pread(fd, end - start, start).rfind(b"\n")) >= 0:
            return start + found + 1
        end = start
    return 0
