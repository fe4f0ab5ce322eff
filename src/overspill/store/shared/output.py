"""One output on a server: a reader that fetches ranges of it."""

from __future__ import annotations

from threading import RLock
from typing import Protocol

from overspill import handles
from overspill.errors import StoreError
from overspill.store import rules
from overspill.store.copies import Copy, LocalCopies, copy_bytes


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
