"""Reads bytes that are in memory or in a temporary file, rather than a stored output."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator

from overspill.errors import StoreError
from overspill.store.protocols import Reader

_BLOCK_BYTES = 1 << 20
_MEMORY_BYTES = 1 << 20


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


class ReaderFile:
    """A reader in the form of a file. `at` is how far it was read."""

    def __init__(self, reader: Reader, at: int = 0) -> None:
        self._reader = reader
        self.at = at

    def read(self, size: int) -> bytes:
        data = self._reader.read(self.at, self.at + size)
        self.at += len(data)
        return data


class Sink:
    """Takes bytes to read again. Above a megabyte, they are in an unlinked file, which disappears with the last view of it."""

    def __init__(self) -> None:
        self.size = 0
        self._file = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES, prefix="overspill-")  # noqa: SIM115  # closed below

    def add(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise StoreError(f"A copy could not be written to {tempfile.gettempdir()}: {error.strerror}.") from None
        self.size += len(data)

    def reader(self) -> BytesReader:
        if self.size <= _MEMORY_BYTES:
            self._file.seek(0)
            return BytesReader(self._file.read())
        try:
            self._file.flush()
            return BytesReader(mmap.mmap(self._file.fileno(), self.size, access=mmap.ACCESS_READ))
        except OSError as error:
            raise StoreError(f"A copy could not be read back: {error.strerror}.") from None

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_blocks(reader: Reader, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    end = reader.size if end is None else end
    for at in range(start, end, _BLOCK_BYTES):
        yield reader.read(at, min(at + _BLOCK_BYTES, end))
