"""A reader over bytes in memory, where no store is needed."""

from __future__ import annotations


class BytesReader:
    def __init__(self, data: bytes) -> None:
        self.data = data

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, start: int, end: int) -> bytes:
        return self.data[start:end]

    def buffer(self) -> memoryview:
        return memoryview(self.data)

    def close(self) -> None:
        pass
