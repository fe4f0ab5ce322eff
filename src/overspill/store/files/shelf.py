"""One session's directory: its journal, and a shelf, opened for reading or held live by the session that writes to it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, suppress
from threading import Lock, RLock

from overspill import handles
from overspill.errors import StoreError, StoreFull, UnknownHandle
from overspill.store import rules
from overspill.store.files import layout, lock
from overspill.store.files.layout import JOURNAL, PART, Directory, explain_failures, to_store_error
from overspill.store.files.output import FileParts, FileReader
from overspill.store.keep import Opening
from overspill.store.protocols import Retention
from overspill.store.quota import OutputQuota
from overspill.store.shelf import BaseShelf

_MAX_FIRST_LINE_BYTES = 4096  # several times what the longest name needs
_BLOCK = 1 << 16
_MODE, _MODE_IF_LINES_ARE_MISSING = 0o600, 0o700


class Journal:
    """Whole lines, by one writer, after a first line that describes the shelf. If a line cannot be written, the mode of the file
    says so until it can: a full disk has no room for more."""

    def __init__(self, directory: Directory, *, is_new: bool) -> None:
        if is_new:
            self._fd = directory.make_file(JOURNAL, os.O_APPEND)
        else:
            self._fd = directory.open_file(JOURNAL, os.O_RDWR | os.O_APPEND)
            os.utime(self._fd)  # for the keep limits, opening a session again counts as using it
        self.may_lack_lines = stat.S_IMODE(os.fstat(self._fd).st_mode) == _MODE_IF_LINES_ARE_MISSING
        """A process could not write everything, and died."""
        self._is_marked = False
        self._closed = False
        self._path = directory.path / JOURNAL
        self._end = _end_of_whole_lines(self._fd)
        self._mutex = Lock()

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
                # If this stayed, readers would see its complete lines twice once the caller retries the write.
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


def _end_of_whole_lines(fd: int) -> int:
    end = os.fstat(fd).st_size
    while end:
        start = max(0, end - _BLOCK)
        if (found := os.pread(fd, end - start, start).rfind(b"\n")) >= 0:
            return start + found + 1
        end = start
    return 0


def read_opening(session: str, directory: Directory) -> Opening:
    """How the journal begins. Has no time if the first line is not, or was never, written completely."""
    with suppress(FileNotFoundError), open(directory.open_file(JOURNAL), "rb", buffering=0) as file:
        line, ended, _ = file.read(_MAX_FIRST_LINE_BYTES).partition(b"\n")
        if ended:
            return Opening.parse(session, line)
    return Opening(session)


class FileShelf(BaseShelf):
    def __init__(self, session: str, directory: Directory, quota: OutputQuota | None = None) -> None:
        super().__init__(session, quota)
        self.directory = directory

    def open(self, id: str) -> FileReader:
        rules.check_id(id)
        # Try the final name twice, because the output may be committed between the first two attempts.
        for name in (id, id + PART, id):
            with explain_failures(f"open {handles.handle(self.session, id)}"), suppress(FileNotFoundError):
                return FileReader(self.directory.open_file(name))
        raise UnknownHandle(handles.handle(self.session, id))

    def note_read(self, id: str) -> None:
        # A store that is gone, or on a read-only disk, cannot record the read, but cannot expire either.
        with suppress(OSError, StoreError):
            os.utime(id, dir_fd=self.directory.fd, follow_symlinks=False)

    def last_used(self, id: str) -> float:
        rules.check_id(id)
        with explain_failures(f"look at {handles.handle(self.session, id)}"), suppress(FileNotFoundError):
            return self.directory.stat(id).st_mtime
        raise UnknownHandle(handles.handle(self.session, id))

    def journal(self, start: int = 0) -> Iterator[bytes]:
        with explain_failures(f"read {self.directory.path / JOURNAL}"), open(self.directory.open_file(JOURNAL), "rb") as file:
            file.seek(start)
            for line in file:
                # Not `continue`: the end of the line, which its writer may add at any moment, would look like another line.
                if not line.endswith(b"\n"):
                    return
                yield line

    def read_on(self, position: int) -> tuple[list[bytes], int]:
        lines = list(self.journal(position))
        return lines, position + sum(map(len, lines))

    def _leave(self) -> None:
        self.directory.close()


class LiveFileShelf(FileShelf):
    """Holds the directory, its lock and its journal until it closes. A store and its shelves share `closing`, so that they close
    one after the other."""

    def __init__(
        self,
        opening: Opening,
        directory: Directory,
        held: lock.Lock,
        journal: Journal,
        quota: OutputQuota,
        closing: RLock,
        ended: Callable[[LiveFileShelf], None],
    ) -> None:
        super().__init__(opening.session, directory, quota)
        self.retention: Retention = opening.retention
        self._lock, self._journal = held, journal
        self._closing, self._ended = closing, ended

    def discard(self) -> None:
        """Close it and remove it."""
        self.retention = "session"
        self.close()

    def close(self) -> None:
        with self._closing, explain_failures(f"close session {self.session}"):
            super().close()

    def _make_parts(self, id: str) -> FileParts:
        handle = handles.handle(self.session, id)
        with explain_failures(f"create {handle}"), suppress(FileExistsError):
            # A writer is forgotten only after its output has its final name, and an unfinished file is not opened again.
            if not layout.find(self.directory, id):
                return FileParts(self.directory, self.session, id, durable=self.retention == "keep")
        raise rules.already_exists_error(handle)

    def _write_journal(self, lines: bytes) -> None:
        self._journal.append(lines)

    def _remove_outputs(self, stays: Collection[str]) -> int:
        with explain_failures(f"clear up session {self.session}"):
            doomed = [name for name in self.directory.names() if name not in stays and name.removesuffix(PART) not in stays]
            return layout.remove_outputs(
                self.directory, [name for name in doomed if name.endswith(PART) or not self._journal.may_lack_lines]
            )

    def _leave(self) -> None:
        with ExitStack() as last:
            last.callback(self.directory.close)
            last.callback(self._lock.release)
            if not self._is_inherited():
                last.callback(self._ended, self)
            self._journal.close(durable=self.retention == "keep")
