"""Reads outputs that are still being written."""

from __future__ import annotations

from overspill.store.protocols import Reader
from overspill.text import encoding


class RunningReader:
    """Reads an output that is still growing as it was when the reader was made, up to the last whole character."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        size = reader.size
        tail = reader.read(size - 4, size)
        self.size = size - len(tail) + encoding.complete_length(tail)

    def read(self, start: int, end: int) -> bytes:
        return self._reader.read(start, min(end, self.size))

    def buffer(self) -> memoryview:
        return self._reader.buffer()[: self.size]

    @property
    def is_removed(self) -> bool:
        return self._reader.is_removed

    def close(self) -> None:
        self._reader.close()
