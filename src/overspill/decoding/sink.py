"""Where decoded bytes go: memory while they are few, then a file without a name, which vanishes with its last user."""

from __future__ import annotations

import mmap
import tempfile
from types import TracebackType

from overspill.errors import StoreError
from overspill.store.readers import BytesReader

_MEMORY_BYTES = 1 << 20


class Sink:
    def __init__(self) -> None:
        self.size = 0
        self._file = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115  # closed below

    def add(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise StoreError(f"Decoded text could not be written to {tempfile.gettempdir()}: {error.strerror}.") from None
        self.size += len(data)

    def reader(self) -> BytesReader:
        if self.size <= _MEMORY_BYTES:
            self._file.seek(0)
            return BytesReader(self._file.read())
        try:
            self._file.flush()
            return BytesReader(mmap.mmap(self._file.fileno(), self.size, access=mmap.ACCESS_READ))
        except OSError as error:
            raise StoreError(f"Decoded text could not be read back: {error.strerror}.") from None

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()
