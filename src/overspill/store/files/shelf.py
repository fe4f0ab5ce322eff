"""One session's directory: opened for reading, or held live by the session that writes to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack, suppress
from threading import Lock as Mutex
from threading import RLock

from overspill import handles
from overspill.errors import StoreError, UnknownHandle
from overspill.store import rules
from overspill.store.files import layout
from overspill.store.files.failures import explain_failures
from overspill.store.files.journal import Journal, whole_lines
from overspill.store.files.layout import PART, Directory
from overspill.store.files.lock import Lock
from overspill.store.files.output import FileReader, FileWriter
from overspill.store.protocols import Retention, Writer
from overspill.store.quota import OutputQuota


class FileShelf:
    """For reading only."""

    def __init__(self, session: str, directory: Directory) -> None:
        self.session = session
        self.directory = directory

    def create(self, id: str) -> Writer:
        raise rules.read_only_error(self.session)

    def open(self, id: str) -> FileReader:
        rules.check_id(id)
        # Try the final name again, because a commit may come between the first two.
        for name in (id, id + PART, id):
            with explain_failures(f"open {handles.handle(self.session, id)}"), suppress(FileNotFoundError):
                return FileReader(self.directory.open_file(name))
        raise UnknownHandle(handles.handle(self.session, id))

    def note_read(self, id: str) -> None:
        # A store that is gone, or on a read-only disk, cannot record the read, but cannot expire either.
        with suppress(OSError, StoreError):
            os.utime(id, dir_fd=self.directory.fd, follow_symlinks=False)

    def append_journal(self, lines: bytes) -> None:
        raise rules.read_only_error(self.session)

    def journal(self) -> Iterator[bytes]:
        return whole_lines(self.directory)

    def read_on(self, position: int) -> tuple[list[bytes], int]:
        lines = list(whole_lines(self.directory, position))
        return lines, position + sum(map(len, lines))

    def remove_unrecorded(self, recorded: Container[str]) -> int:
        raise rules.read_only_error(self.session)

    def close(self) -> None:
        self.directory.close()


class LiveFileShelf(FileShelf):
    """A store and its shelves share `closing`, so that they close one after the other."""

    def __init__(
        self,
        session: str,
        directory: Directory,
        *,
        lock: Lock,
        journal: Journal,
        retention: Retention,
        quota: OutputQuota,
        closing: RLock,
        ended: Callable[[LiveFileShelf], None],
    ) -> None:
        super().__init__(session, directory)
        self.retention: Retention = retention
        self._lock = lock
        self._journal = journal
        self._quota = quota
        self._closing = closing
        self._ended = ended
        self._writers: dict[str, FileWriter] = {}
        self._mutex = Mutex()
        self._closed = False

    def create(self, id: str) -> FileWriter:
        rules.check_id(id)
        handle = handles.handle(self.session, id)
        with self._mutex, explain_failures(f"create {handle}"):
            self._check_writable()
            # A writer is forgotten only after its output has its final name, and an unfinished file is not opened again.
            if id in self._writers or layout.is_complete(self.directory, id):
                raise rules.already_exists_error(handle)
            try:
                self._writers[id] = writer = self._new_writer(id)
            except FileExistsError:
                raise rules.already_exists_error(handle) from None
            return writer

    def _new_writer(self, id: str) -> FileWriter:
        durable = self.retention == "keep"
        return FileWriter(self.directory, self.session, id, quota=self._quota, durable=durable, ended=self._note_written)

    def append_journal(self, lines: bytes) -> None:
        rules.check_lines(lines)
        self._check_writable()
        self._journal.append(lines)

    def remove_unrecorded(self, recorded: Container[str]) -> int:
        def is_doomed(name: str) -> bool:
            id = name.removesuffix(PART)
            is_unfinished = id != name
            return id not in recorded and id not in self._writers and (is_unfinished or not self._journal.may_lack_lines)

        with self._mutex, explain_failures(f"clear up session {self.session}"):
            self._check_writable()
            return layout.remove_outputs(self.directory, is_doomed=is_doomed)

    def close(self) -> None:
        with self._closing, explain_failures(f"close session {self.session}"), ExitStack() as last:
            with self._mutex:
                if self._closed:
                    return
                self._closed = True
            for writer in list(self._writers.values()):
                writer.abandon()
            last.callback(self.directory.close)
            last.callback(self._lock.release)
            # In a forked child, the session belongs to its parent and has not ended.
            if not self._lock.inherited:
                last.callback(self._ended, self)
            self._journal.close(durable=self.retention == "keep")

    def _check_writable(self) -> None:
        if self._closed:
            raise rules.closed_error("shelf")
        if self._lock.inherited:
            raise StoreError(
                f"Session {self.session} belongs to the process this one was forked from. Open a new session in this process."
            )

    def _note_written(self, id: str) -> None:
        self._writers.pop(id, None)
