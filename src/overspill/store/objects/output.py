"""One output as objects: a writer that adds parts, and a reader that fetches ranges of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from threading import RLock

from msgspec import Struct

from overspill import handles
from overspill.errors import StoreError, UnknownHandle
from overspill.store import rules
from overspill.store.copies import Copy, LocalCopies, copy_bytes
from overspill.store.objects.bucket import Bucket, Item
from overspill.store.quota import OutputQuota

DONE, REMOVED, USED = "done", "removed", "used"
_START_DIGITS = 16


class Parts(Struct, frozen=True):
    """What a listing shows of one output."""

    starts: list[int]
    size: int
    is_done: bool
    is_removed: bool
    used: float

    @classmethod
    def of(cls, items: list[Item]) -> Parts:
        """From its objects. A part that another should come before has not been acknowledged, and does not count."""
        starts: list[int] = []
        size = 0
        names: set[str] = set()
        for item in items:
            name = item.key.rpartition("/")[2]
            if len(name) == _START_DIGITS:
                if int(name, 16) == size:
                    starts.append(size)
                    size += item.size
            else:
                names.add(name)
        used = max((item.modified for item in items), default=0.0)
        return cls(starts, size, DONE in names, REMOVED in names, used)


def folder(session: str, id: str) -> str:
    return f"data/{session}/{id}/"


def read_parts(bucket: Bucket, session: str, id: str) -> Parts | None:
    """None if there is no such output."""
    items = list(bucket.list(folder(session, id)))
    return Parts.of(items) if items else None


class ObjectWriter:
    def __init__(
        self,
        bucket: Bucket,
        session: str,
        id: str,
        *,
        quota: OutputQuota,
        check: Callable[[], None],
        ended: Callable[[str], None],
    ) -> None:
        self._bucket = bucket
        self._session = session
        self._id = id
        self._folder = folder(session, id)
        self._handle = handles.handle(session, id)
        self._quota = quota
        self._check = check
        self._ended = ended
        self._size = 0
        self._starts: list[int] = []
        self._open = True
        self._committed = False
        self._is_uncertain = False
        """Whether a part may be stored although the service did not say so."""
        self._mutex = RLock()

    @property
    def size(self) -> int:
        return self._size

    def append(self, data: bytes | memoryview) -> None:
        view = rules.bytes_of(data)
        if not view.nbytes:
            return
        with self._mutex:
            self._check_open()
            granted = self._quota.take(self._session, self._id, view.nbytes)
            written = 0
            try:
                if granted:
                    self._add_part(view[:granted])
                    written = granted
            finally:
                self._quota.give_back(self._session, self._id, granted - written)
        if granted < view.nbytes:
            raise self._quota.exhausted_error(view.nbytes - granted)

    def commit(self) -> None:
        with self._mutex:
            if self._committed:
                return
            self._check_open()
            self._create(self._folder + DONE, str(self._size).encode())
            self._committed = True
            self.abandon()

    def discard(self) -> None:
        with self._mutex:
            if not self._open:
                return
            self._bucket.delete([self._name_part(start) for start in self._starts])
            self._quota.release(self._session, self._id)
            self.abandon()

    def abandon(self) -> None:
        """Stop writing and leave what is there."""
        with self._mutex:
            if self._open:
                self._open = False
                self._ended(self._id)

    def _add_part(self, data: memoryview) -> None:
        self._create(self._name_part(self._size), data)
        self._starts.append(self._size)
        self._size += data.nbytes

    def _create(self, key: str, data: bytes | memoryview) -> None:
        # If the answer to a request was lost, the library or the writer repeats it, and then finds its own object.
        try:
            is_new = self._bucket.create(key, data)
        except StoreError:
            self._is_uncertain = True
            raise
        if not is_new and not self._is_own(key, data):
            raise rules.already_exists_error(self._handle)

    def _is_own(self, key: str, data: bytes | memoryview) -> bool:
        """Of an output that this writer began, nobody else writes a part."""
        found = self._bucket.get(key) if self._starts or self._is_uncertain else None
        return found is not None and found[0] == bytes(data)

    def _name_part(self, start: int) -> str:
        return f"{self._folder}{start:0{_START_DIGITS}x}"

    def _check_open(self) -> None:
        if not self._open:
            raise rules.closed_error("output")
        self._check()


class ObjectReader:
    """An output that is complete never changes, so that only its bytes are asked for."""

    def __init__(self, bucket: Bucket, copies: LocalCopies, session: str, id: str, parts: Parts) -> None:
        self._bucket = bucket
        self._copies = copies
        self._session = session
        self._id = id
        self._folder = folder(session, id)
        self._handle = handles.handle(session, id)
        self._parts = parts
        self._copy: Copy | None = None
        self._open = True
        self._mutex = RLock()

    @property
    def size(self) -> int:
        return self._latest().size

    def read(self, start: int, end: int) -> bytes:
        parts = self._latest()
        start, end = max(start, 0), min(end, parts.size)
        return self._read(start, end) if start < end else b""

    def buffer(self) -> memoryview:
        with self._mutex:
            parts = self._latest()
            if self._copy is None or len(self._copy) != parts.size:
                if parts.is_done:
                    self._copy = self._copies.get(self._handle, parts.size, self._read)
                else:
                    self._copy = copy_bytes(parts.size, self._read)
            return memoryview(self._copy)

    @property
    def is_removed(self) -> bool:
        self._check_open()
        if self._bucket.find(self._folder + REMOVED) is not None:
            return True
        return self._parts.is_done and self._bucket.find(self._folder + DONE) is None

    def close(self) -> None:
        self._open = False
        self._copy = None

    def _latest(self) -> Parts:
        self._check_open()
        if not self._parts.is_done:
            self._parts = read_parts(self._bucket, self._session, self._id) or self._parts
        return self._parts

    def _read(self, start: int, end: int) -> bytes:
        starts = self._parts.starts
        pieces: list[bytes] = []
        at = bisect_right(starts, start) - 1
        while start < end:
            part_end = starts[at + 1] if at + 1 < len(starts) else self._parts.size
            piece_end = min(end, part_end)
            key = f"{self._folder}{starts[at]:0{_START_DIGITS}x}"
            piece = self._bucket.range(key, start - starts[at], piece_end - starts[at])
            if piece is None or len(piece) < piece_end - start:
                raise StoreError(f"{self._handle} has been removed from {self._bucket.url}. Call the tool again.")
            pieces.append(piece)
            start, at = piece_end, at + 1
        return b"".join(pieces)

    def _check_open(self) -> None:
        if not self._open:
            raise rules.closed_error("reader")


def open_output(bucket: Bucket, copies: LocalCopies, session: str, id: str) -> ObjectReader:
    parts = read_parts(bucket, session, id)
    if parts is None or parts.is_removed:
        raise UnknownHandle(handles.handle(session, id))
    return ObjectReader(bucket, copies, session, id, parts)
