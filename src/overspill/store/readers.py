"""Reads bytes that are in memory or mapped, rather than a stored output."""

from __future__ import annotations

import mmap
from collections.abc import Iterator

from overspill.store.protocols import Reader

_BLOCK_BYTES = 1 << 20


class BytesReader:
    """A `Reader` of an output that could not be stored, of the beginning of one, or of decoded text."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self._data = data

    @property
    def size(self) -> int:
        return len(self._data)

    def read(self, start: int, end: int) -> bytes:
        return self._data[max(start, 0) : max(end, 0)]

    def buffer(self) -> memoryview:
        return memoryview(self._data)

    @property
    def is_removed(self) -> bool:
        return False

    def close(self) -> None:
        """Views may still be in use. The memory is freed with the last of them."""


def read_blocks(reader: Reader, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    end = reader.size if end is None else end
    for at in range(start, end, _BLOCK_BYTES):
        yield reader.read(at, min(at + _BLOCK_BYTES, end))
