"""One output on a server: a writer that adds parts, and a reader that fetches ranges of them."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Protocol

from overspill import handles
from overspill.errors import StoreError
from overspill.store import rules
from overspill.store.copies import Copy, LocalCopies, copy_bytes
from overspill.store.quota import OutputQuota


class OutputParts(Protocol):
    """Where the parts of one output go. Each method does all that it is asked, or raises StoreError."""

    max_bytes: int
    """Of one part."""

    def add(self, start: int, data: memoryview) -> None:
        """The first part creates the output, or finds that the id is taken."""
        ...

    def complete(self, size: int) -> None: ...
    def remove(self) -> None:
        """The parts that were added."""
        ...


class OutputSource(Protocol):
    """What is stored of one output."""

    url: str
    """Of the store."""

    def measure(self) -> tuple[int, bool]:
        """How many bytes it has, and whether it is complete. One that is complete never changes, so that the server is asked
        only once."""
        ...

    def read(self, start: int, end: int) -> bytes:
        """Less than was asked for means that the output has been removed."""
        ...

    def is_removed(self) -> bool: ...


class SharedWriter:
    """`check` raises StoreError if the session cannot write any more."""

    def __init__(
        self,
        session: str,
        id: str,
        parts: OutputParts,
        *,
        quota: OutputQuota,
        check: Callable[[], None],
        ended: Callable[[str], None],
    ) -> None:
        self._session = session
        self._id = id
        self._parts = parts
        self._quota = quota
        self._check = check
        self._ended = ended
        self._size = 0
        self._is_open = True
        self._is_committed = False
        self._mutex = RLock()

    @property
    def size(self) -> int:
        return self._size

    def append(self, data: bytes | memoryview) -> None:
        view = rules.bytes_of(data)
        with self._mutex:
            self._check_open()
            before = self._size
            granted = self._quota.take(self._session, self._id, view.nbytes)
            try:
                for start in range(0, granted, self._parts.max_bytes):
                    part = view[start : min(granted, start + self._parts.max_bytes)]
                    self._parts.add(self._size, part)
                    self._size += part.nbytes
            finally:
                self._quota.give_back(self._session, self._id, granted - (self._size - before))
        if granted < view.nbytes:
            raise self._quota.exhausted_error(view.nbytes - granted)

    def commit(self) -> None:
        with self._mutex:
            if self._is_committed:
                return
            self._check_open()
            self._parts.complete(self._size)
            self._is_committed = True
            self.abandon()

    def discard(self) -> None:
        with self._mutex:
            if not self._is_open:
                return
            if self._size:
                self._parts.remove()
            self._quota.release(self._session, self._id)
            self.abandon()

    def abandon(self) -> None:
        """Stop writing and leave what is there."""
        with self._mutex:
            if self._is_open:
                self._is_open = False
                self._ended(self._id)

    def _check_open(self) -> None:
        if not self._is_open:
            raise rules.closed_error("output")
        self._check()


class SharedReader:
    def __init__(self, session: str, id: str, source: OutputSource, copies: LocalCopies) -> None:
        self._handle = handles.handle(session, id)
        self._source = source
        self._copies = copies
        self._copy: Copy | None = None
        self._is_open = True
        self._mutex = RLock()

    @property
    def size(self) -> int:
        self._check_open()
        return self._source.measure()[0]

    def read(self, start: int, end: int) -> bytes:
        start, end = max(start, 0), min(end, self.size)
        return self._read(start, end) if start < end else b""

    def buffer(self) -> memoryview:
        with self._mutex:
            self._check_open()
            size, is_complete = self._source.measure()
            if self._copy is None or len(self._copy) != size:
                self._copy = self._copies.get(self._handle, size, self._read) if is_complete else copy_bytes(size, self._read)
            return memoryview(self._copy)

    @property
    def is_removed(self) -> bool:
        self._check_open()
        return self._source.is_removed()

    def close(self) -> None:
        self._is_open = False
        self._copy = None

    def _read(self, start: int, end: int) -> bytes:
        data = self._source.read(start, end)
        if len(data) < end - start:
            raise StoreError(f"{self._handle} has been removed from {self._source.url}. Call the tool again.")
        return data

    def _check_open(self) -> None:
        if not self._is_open:
            raise rules.closed_error("reader")
