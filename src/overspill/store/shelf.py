"""What the shelves of every kind of store have in common: who may write, what is being written, and how much of it fits."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from threading import Lock, RLock
from typing import Protocol

from overspill import handles
from overspill.errors import StoreError
from overspill.store import rules
from overspill.store.protocols import Writer
from overspill.store.quota import OutputQuota


class OutputParts(Protocol):
    """Writes the parts of one output."""

    size: int = 0
    """How many bytes are stored."""
    max_bytes: int = sys.maxsize
    """The most bytes of one part."""

    def add(self, data: memoryview) -> None:
        """Store all of `data`, or raise StoreError. `size` grows by what is stored. If the output does not exist, its first part
        creates it, or finds that the id is taken."""

    def complete(self) -> None: ...
    def remove(self) -> None:
        """Remove what was added."""

    def close(self) -> None:
        """Leave what is there."""


class BaseShelf:
    """A shelf without a quota is for reading only. Each kind of store adds how to read, and the methods with an underscore."""

    def __init__(self, session: str, quota: OutputQuota | None = None) -> None:
        self.session = session
        self.writers: dict[str, OutputWriter] = {}
        """The outputs that are being written."""
        self._quota = quota
        self._pid = os.getpid()
        self._is_closed = False
        self._mutex = Lock()

    def create(self, id: str) -> Writer:
        rules.check_id(id)
        with self._mutex:
            self.check_writable()
            if id in self.writers:
                raise rules.already_exists_error(handles.handle(self.session, id))
            writer = self.writers[id] = OutputWriter(self, id, self._make_parts(id))
            return writer

    def append_journal(self, lines: bytes) -> None:
        if not lines.endswith(b"\n"):
            raise StoreError("A journal holds whole lines. End each with a line feed.")
        self.check_writable()
        self._write_journal(lines)

    def remove_unrecorded(self, recorded: Collection[str]) -> int:
        self.check_writable()
        with self._mutex:
            return self._remove_outputs({*recorded, *self.writers})

    def close(self) -> None:
        with self._mutex:
            if self._is_closed:
                return
            self._is_closed = True
        for writer in list(self.writers.values()):
            writer.abandon()
        self._leave()

    def check_writable(self) -> OutputQuota:
        """The quota for further writes. Raises StoreError if the shelf cannot be written to."""
        if self._quota is None:
            raise StoreError(f"Session {self.session} was opened for reading only. Only the session itself writes to its shelf.")
        self._check_open()
        if self._is_inherited():
            raise StoreError(
                f"Session {self.session} belongs to the process this one was forked from. Open a new session in this process."
            )
        return self._quota

    def _check_open(self) -> None:
        if self._is_closed:
            raise rules.closed_error("shelf")

    def _make_parts(self, id: str) -> OutputParts:
        """Make the writer of one output's parts. Raises StoreError if an output that this shelf is not writing has the id."""
        raise NotImplementedError

    def _write_journal(self, lines: bytes) -> None:
        raise NotImplementedError

    def _remove_outputs(self, stays: Collection[str]) -> int:
        """Remove all outputs but those that stay. Returns how many bytes they had."""
        raise NotImplementedError

    def _leave(self) -> None:
        """End the session. Called once, when nothing is being written any more."""

    def _is_inherited(self) -> bool:
        """Whether this is a forked child. The session is its parent's, and has not ended with it."""
        return self._pid != os.getpid()


class OutputWriter:
    """Writes one output in parts, within the quota. The output of a cancelled job may be discarded during an append."""

    def __init__(self, shelf: BaseShelf, id: str, parts: OutputParts) -> None:
        self._shelf, self._session, self._id, self._parts = shelf, shelf.session, id, parts
        self._quota = shelf.check_writable()
        self._is_open = True
        self._is_committed = False
        self._mutex = RLock()

    @property
    def size(self) -> int:
        return self._parts.size

    def append(self, data: bytes | memoryview) -> None:
        view = rules.bytes_of(data)
        with self._mutex:
            self._check_open()
            before = self.size
            granted = self._quota.take(self._session, self._id, view.nbytes)
            try:
                for start in range(0, granted, self._parts.max_bytes):
                    self._parts.add(view[start : min(granted, start + self._parts.max_bytes)])
            finally:
                self._quota.give_back(self._session, self._id, granted - (self.size - before))
        if granted < view.nbytes:
            raise self._quota.exhausted_error(view.nbytes - granted)

    def commit(self) -> None:
        with self._mutex:
            if self._is_committed:
                return
            self._check_open()
            self._parts.complete()
            self._is_committed = True
            self.abandon()

    def discard(self) -> None:
        with self._mutex:
            if self._is_open:
                self._parts.remove()
                self._quota.release(self._session, self._id)
                self.abandon()

    def abandon(self) -> None:
        """Stop writing and leave what is there."""
        with self._mutex:
            if self._is_open:
                self._is_open = False
                self._parts.close()
                self._shelf.writers.pop(self._id, None)

    def _check_open(self) -> None:
        if not self._is_open:
            raise rules.closed_error("output")
        self._shelf.check_writable()
