"""One output as objects: its parts, written one after another, and what a listing shows of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from msgspec import Struct

from overspill import handles
from overspill.errors import StoreError
from overspill.store import rules
from overspill.store.objects.bucket import Bucket, Item
from overspill.store.shelf import OutputParts

DONE, REMOVED, USED = "done", "removed", "used"
_START_DIGITS = 16


class Parts(Struct, frozen=True):
    """The parts of one output, as a listing shows them."""

    starts: list[int]
    size: int
    is_done: bool
    is_removed: bool
    used: float

    @classmethod
    def of(cls, items: list[Item]) -> Parts:
        """Build it from a listing of the output's objects. A part after a gap was never acknowledged, and does not count."""
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


NOTHING_YET = Parts([], 0, is_done=False, is_removed=False, used=0)


def folder(session: str, id: str) -> str:
    return f"data/{session}/{id}/"


def recorded_key(session: str, id: str) -> str:
    """The key of the object with the journal's line about the output, which short names need: they have only the end of an id."""
    return f"recorded/{id[-handles.ENDING_CHARS :]}/{session}/{id}"


def read_parts(bucket: Bucket, session: str, id: str) -> Parts | None:
    """The parts of an output, or None if it does not exist."""
    items = list(bucket.list(folder(session, id)))
    return Parts.of(items) if items else None


class ObjectParts(OutputParts):
    """Written by one writer. `check` raises StoreError if another process has taken the session, and returns how often the lease
    has run out. While it is out, others may sweep away incomplete outputs."""

    def __init__(self, bucket: Bucket, session: str, id: str, check: Callable[[], int]) -> None:
        self._bucket = bucket
        self._session = session
        self._id = id
        self._folder = folder(session, id)
        self._handle = handles.handle(session, id)
        self._check = check
        self._starts: list[int] = []
        self._lapses = 0
        """The count when the first part was added."""
        self._is_uncertain = False
        """Whether a part may be stored although the service did not confirm it."""

    def add(self, data: memoryview) -> None:
        lapses = self._check()
        self._create(self._folder + _name_part(self.size), data)
        if not self._starts:
            self._lapses = lapses
        self._starts.append(self.size)
        self.size += data.nbytes

    def complete(self) -> None:
        self._check()
        self._create(self._folder + DONE, str(self.size).encode())
        if self._starts and self._check() != self._lapses:
            # A sweeper leaves its mark and then checks whether the output is complete. Here it is completed first, and then
            # checked for the mark, so one of the two always sees the other.
            parts = read_parts(self._bucket, self._session, self._id)
            if parts is None or parts.is_removed or parts.size != self.size:
                self.remove()
                self._bucket.delete([self._folder + DONE])
                raise StoreError(f"{self._handle} was removed while it was being written. Call the tool again.")

    def remove(self) -> None:
        self._bucket.delete([self._folder + _name_part(start) for start in self._starts])

    def _create(self, key: str, data: bytes | memoryview) -> None:
        # If the answer to a request was lost, the library or the writer repeats it, and then finds its own object.
        try:
            is_new = self._bucket.create(key, data)
        except StoreError:
            self._is_uncertain = True
            raise
        if not is_new:
            # No other process writes a part of an output that this writer began.
            found = self._bucket.get(key) if self._starts or self._is_uncertain else None
            if found is None or found[0] != bytes(data):
                raise rules.already_exists_error(self._handle)
        self._check()


class ObjectSource:
    def __init__(self, bucket: Bucket, session: str, id: str, parts: Parts) -> None:
        self.url = bucket.url
        self._bucket = bucket
        self._session = session
        self._id = id
        self._folder = folder(session, id)
        self._parts = parts

    def measure(self) -> tuple[int, bool]:
        if not self._parts.is_done:
            self._parts = read_parts(self._bucket, self._session, self._id) or self._parts
        return self._parts.size, self._parts.is_done

    def read(self, start: int, end: int) -> bytes:
        starts = self._parts.starts
        pieces: list[bytes] = []
        at = bisect_right(starts, start) - 1
        while start < end:
            part_end = starts[at + 1] if at + 1 < len(starts) else self._parts.size
            piece_end = min(end, part_end)
            piece = self._bucket.range(self._folder + _name_part(starts[at]), start - starts[at], piece_end - starts[at])
            if piece is None:
                break
            pieces.append(piece)
            start, at = piece_end, at + 1
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def is_removed(self) -> bool:
        if self._bucket.find(self._folder + REMOVED) is not None:
            return True
        return self._parts.is_done and self._bucket.find(self._folder + DONE) is None


def _name_part(start: int) -> str:
    return f"{start:0{_START_DIGITS}x}"
