"""One output as a file: `<uuid>.part` until it is complete and gets its final name, and a reader for both."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from threading import RLock

from overspill import handles
from overspill.store import rules
from overspill.store.files.layout import PART, Directory, explain_failures, to_store_error
from overspill.store.shelf import OutputParts


class FileParts(OutputParts):
    def __init__(self, directory: Directory, session: str, id: str, *, durable: bool) -> None:
        self._directory = directory
        self._id = id
        self._handle = handles.handle(session, id)
        self._durable = durable
        self._fd = directory.make_file(id + PART)

    def add(self, data: memoryview) -> None:
        try:
            while data:
                written = os.write(self._fd, data)
                self.size += written
                data = data[written:]
        except OSError as error:
            # A torn tail would be mistaken for part of the output.
            with suppress(OSError):
                os.ftruncate(self._fd, self.size)
            raise to_store_error(f"store {self._handle}", error) from error

    def complete(self) -> None:
        with explain_failures(f"complete {self._handle}"):
            # Only kept outputs must survive this process and a power failure. Other outputs need not wait for the disk.
            if self._durable:
                os.fsync(self._fd)
            os.rename(self._id + PART, self._id, src_dir_fd=self._directory.fd, dst_dir_fd=self._directory.fd)
            if self._durable:
                os.fsync(self._directory.fd)

    def remove(self) -> None:
        with explain_failures(f"discard {self._handle}"), suppress(FileNotFoundError):
            self._directory.remove_file(self._id + PART)

    def close(self) -> None:
        os.close(self._fd)


_MAX_COPIED_BYTES = 1 << 20


class FileReader:
    """If the file is still being written, each call sees what has been appended by then.

    A file that is mapped and then shortened by another program of this user ends this process when the missing part is read
    (SIGBUS). So `read` never maps, and `buffer` maps only what would take much memory.
    """

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd
        self._map: mmap.mmap | bytes | None = None
        self._mutex = RLock()

    @property
    def size(self) -> int:
        with self._mutex:
            return os.fstat(self._readable()).st_size

    def read(self, start: int, end: int) -> bytes:
        pieces: list[bytes] = []
        with self._mutex, explain_failures("read a stored output"):
            fd = self._readable()
            start, end = max(start, 0), min(end, self.size)
            while start < end and (piece := os.pread(fd, end - start, start)):
                pieces.append(piece)
                start += len(piece)
        return b"".join(pieces)

    def buffer(self) -> memoryview:
        with self._mutex, explain_failures("map a stored output"):
            size = self.size
            if not size:
                return memoryview(b"")
            if self._map is None or len(self._map) != size:
                small = size <= _MAX_COPIED_BYTES
                self._map = self.read(0, size) if small else mmap.mmap(self._readable(), size, access=mmap.ACCESS_READ)
            return memoryview(self._map)

    @property
    def is_removed(self) -> bool:
        with self._mutex:
            return not os.fstat(self._readable()).st_nlink

    def close(self) -> None:
        with self._mutex:
            if self._fd is None:
                return
            os.close(self._fd)
            self._fd = None
            if isinstance(self._map, mmap.mmap):
                # A view is still in use. The map is freed with the last view.
                with suppress(BufferError):
                    self._map.close()
            self._map = None

    def __del__(self) -> None:
        self.close()

    def _readable(self) -> int:
        if self._fd is None:
            raise rules.closed_error("reader")
        return self._fd
