"""Local copies of outputs that are stored elsewhere, for what needs all of their bytes at once: the engine, SQL and decoding."""

from __future__ import annotations

import mmap
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import TypeAlias

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
