"""One session's directory: opened for reading, or held live by the session that writes to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, suppress
from threading import RLock

from msgspec import Struct

from overspill import handles
from overspill.errors import StoreError, UnknownHandle
from overspill.store import rules
from overspill.store.files import layout
from overspill.store.files.failures import explain_failures
from overspill.store.files.journal import Journal, whole_lines
from overspill.store.files.layout import PART, Directory
from overspill.store.files.lock import Lock
from overspill.store.files.output import FileParts, FileReader
from overspill.store.keep import Opening
from overspill.store.protocols import Retention
from overspill.store.quota import OutputQuota
from overspill.store.shelf import BaseShelf


class FileShelf(BaseShelf):
    def __init__(self, session: str, directory: Directory, quota: OutputQuota | None = None) -> None:
        super().__init__(session, quota)
        self.directory = directory

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

    def journal(self) -> Iterator[bytes]:
        return whole_lines(self.directory)

    def read_on(self, position: int) -> tuple[list[bytes], int]:
        lines = list(whole_lines(self.directory, position))
        return lines, position + sum(map(len, lines))

    def _leave(self) -> None:
        self.directory.close()


class HeldDirectory(Struct, frozen=True):
    directory: Directory
    lock: Lock
    journal: Journal


class LiveFileShelf(FileShelf):
    """A store and its shelves share `closing`, so that they close one after the other."""

    def __init__(
        self, opening: Opening, held: HeldDirectory, quota: OutputQuota, closing: RLock, ended: Callable[[LiveFileShelf], None]
    ) -> None:
        super().__init__(opening.session, held.directory, quota)
        self.retention: Retention = opening.retention
        self._lock, self._journal = held.lock, held.journal
        self._closing, self._ended = closing, ended

    def discard(self) -> None:
        """Close it, and keep nothing of it."""
        self.retention = "session"
        self.close()

    def close(self) -> None:
        with self._closing, explain_failures(f"close session {self.session}"):
            super().close()

    def _make_parts(self, id: str) -> FileParts:
        handle = handles.handle(self.session, id)
        with explain_failures(f"create {handle}"):
            try:
                # A writer is forgotten only after its output has its final name, and an unfinished file is not opened again.
                if not layout.has_file(self.directory, id):
                    return FileParts(self.directory, self.session, id, durable=self.retention == "keep")
            except FileExistsError:
                pass
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

    def _is_inherited(self) -> bool:
        return self._lock.inherited
