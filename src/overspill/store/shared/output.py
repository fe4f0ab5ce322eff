"""One output on a server: a reader that fetches ranges of it, and copies for what needs all bytes at once, such as SQL."""

from __future__ import annotations

import mmap
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock, RLock
from typing import Protocol, TypeAlias

from overspill import handles
from overspill.errors import StoreError
from overspill.store import rules

MAX_COPIED_BYTES = 1 << 30
"""Of all copies that wait to be used again. A copy in use stays, whatever its size."""
_MAX_HEAP_BYTES = 1 << 20
_SLICE_BYTES = 8 << 20

Copy: TypeAlias = "mmap.mmap | bytes"


class LocalCopies:
    """A copy larger than a megabyte is an unlinked file: nobody else can open it, and it disappears with the process."""

    def __init__(self, limit: int = MAX_COPIED_BYTES) -> None:
        self._limit = limit
        self._copies: OrderedDict[Hashable, Copy] = OrderedDict()
        self._bytes = 0
        self._mutex = Lock()

    def get(self, key: Hashable, size: int, read: Callable[[int, int], bytes]) -> Copy:
        """The copy of an output that never changes. `read` gets a range of it."""
        with self._mutex:
            if (found := self._copies.get(key)) is not None:
                self._copies.move_to_end(key)
                return found
        made = copy_bytes(size, read)
        with self._mutex:
            if size <= self._limit and key not in self._copies:
                self._copies[key] = made
                self._bytes += size
                while self._bytes > self._limit:
                    self._bytes -= len(self._copies.popitem(last=False)[1])
        return made

    def clear(self) -> None:
        with self._mutex:
            self._copies.clear()
            self._bytes = 0


def copy_bytes(size: int, read: Callable[[int, int], bytes]) -> Copy:
    if size <= _MAX_HEAP_BYTES:
        return read(0, size)
    with tempfile.TemporaryFile(prefix="overspill-") as file:
        for start in range(0, size, _SLICE_BYTES):
            file.write(read(start, min(size, start + _SLICE_BYTES)))
        file.flush()
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)


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
