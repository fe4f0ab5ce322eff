"""A tool's output goes to memory while it is small, then to the store. It is measured and hashed on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from threading import Lock
from typing import TypeAlias

from msgspec import Struct

from overspill.errors import HandleError, StoreError
from overspill.store.away import WaitingWriter
from overspill.store.meter import Meter
from overspill.store.protocols import Reader, Shelf, Writer
from overspill.store.readers import BytesReader, read_blocks
from overspill.text import encoding, tokens
from overspill.types import Size
from overspill.wording import retrieval as wording

MEMORY = 1 << 20
"""Bytes that wait in memory until it is known whether the output must be stored at all."""

Filter: TypeAlias = Callable[[bytes, bool], bytes]
"""Gets data and whether that is the last of it, and returns the bytes to store. It may hold some back until the end."""


class SealedOutput(Struct, frozen=True):
    """The part of an output that the store has, and why that is not all of it."""

    size: Size
    sha256: str
    missing: str
    checkpoints: list[tuple[int, int, int]]
    """Noted by `Meter`, so that a reader need not count from the start."""
    is_plain: bool


class Spool:
    """Its methods block. `limit` is how many bytes of one output may be stored; further bytes are counted and dropped.
    `exact_bytes` is for `Meter`. Only the result of `filter` is kept, not the original data."""

    def __init__(
        self,
        shelf: Shelf,
        id: str,
        limit: int | None = None,
        model: str | None = None,
        exact_bytes: int = tokens.MAX_EXACT_CHARS,
        filter: Filter | None = None,
    ) -> None:
        self.id = id
        self.filter = filter
        self.total = 0
        self.failure = ""
        self._shelf = shelf
        self._limit = limit
        self._new_meter = partial(Meter, model, exact_bytes)
        self._meter = self._new_meter()
        self._memory = bytearray()
        self._writer: Writer | None = None
        self._hash = hashlib.sha256()
        self._hash_ahead = self._hash
        """With what is in memory, if `sha256` was read, so that it is hashed only once."""
        self._closed = False
        self._lock = Lock()  # reading a running job's output flushes it while the job is still writing

    @property
    def size(self) -> Size:
        """The size of the output. Valid when everything has arrived."""
        with self._lock:
            self._end_filter()
            return self._meter.size()

    @property
    def in_memory(self) -> bool:
        return self._writer is None

    @property
    def is_waiting(self) -> bool:
        """Whether the output is in memory only, until its store answers again."""
        return isinstance(self._writer, WaitingWriter) and self._writer.is_waiting

    @property
    def due(self) -> bool:
        """Whether enough data waits in memory to flush it."""
        return len(self._memory) >= MEMORY and not self.failure

    @property
    def sha256(self) -> str:
        """The hash of the output. Valid when everything has arrived; empty if part of the output could not be stored."""
        with self._lock:
            self._end_filter()
            self._hash_ahead = self._hash.copy()
            self._hash_ahead.update(self._memory)
            return "" if self.failure else self._hash_ahead.hexdigest()

    def add(self, data: bytes, chars: int | None = None) -> None:
        """Measure and remember, which is quick. Callers that add a lot check `due` and flush off the event loop.

        `chars`: how many characters these bytes are, if that is known.
        """
        with self._lock:
            if self._closed:  # an abandoned generator may still yield
                return
            self.total += len(data)
            self._take(data if self.filter is None else self.filter(data, False), None if self.filter else chars)

    def _take(self, data: bytes, chars: int | None = None) -> None:
        if self.failure:
            return
        accepted = data
        if self._limit is not None and self._meter.bytes + len(data) > self._limit:
            accepted = data[: self._limit - self._meter.bytes]
            accepted = accepted[: encoding.complete_length(accepted)]
        self._meter.add(accepted, chars if len(accepted) == len(data) else None)
        self._memory += accepted
        self._hash_ahead = self._hash
        if len(accepted) < len(data):
            self.failure = f"one output may have at most {self._limit:,} bytes (truncation.maxArtifactSize)."

    def begin_block(self) -> int:
        """The position where the next stored text begins. A secret never spans two texts."""
        with self._lock:
            self._end_filter()
            return self.total if self.filter is None else self._meter.bytes

    def _end_filter(self) -> None:
        if self.filter is not None:
            self._take(self.filter(b"", True))

    def add_text(self, content: str) -> None:
        """Add in slices, so that a large string and all of its UTF-8 are never in memory together."""
        for start in range(0, len(content), MEMORY):
            piece = content[start : start + MEMORY]
            self.add(encoding.encode(piece), len(piece))
            if self.due:
                self.flush()

    def flush(self) -> None:
        """Make everything so far readable in the store."""
        with self._lock:
            self._to_store()

    def read(self, start: int, end: int) -> bytes:
        """Read from memory or the store. Raises StoreError if what was stored has been removed."""
        if self._writer is None:
            return bytes(self._memory[start:end])
        with closing(self.open()) as reader:
            return reader.read(start, end)

    def open(self) -> Reader:
        if self._writer is None:
            return BytesReader(bytes(self._memory))
        if not self._closed:
            self.flush()
        try:
            return self._shelf.open(self.id)
        except HandleError as error:
            raise StoreError("its beginning was stored and has been removed since.") from error

    def seal(self) -> SealedOutput:
        """Commit what has been stored. Raises StoreError if nothing could be stored; what was in memory then stays there."""
        with self._lock:
            self._closed = True
            self._end_filter()
            held = self._memory if self._writer is None or not self._writer.size else bytearray()
            self._to_store()
            try:
                if self._writer is None or (self.failure and not self._writer.size):
                    raise StoreError(self.failure)
                self._writer.commit()
            except StoreError:
                if self._writer is not None:
                    with suppress(StoreError):
                        self._writer.discard()
                self._writer, self._memory = None, held
                raise
            if self._writer.size < self._meter.bytes:  # the disk was full: measure what is really there
                self._meter = self._new_meter()
                with closing(self._shelf.open(self.id)) as reader:
                    for block in read_blocks(reader):
                        self._meter.add(block)
            meter = self._meter
            return SealedOutput(meter.size(), self._hash.hexdigest(), self.failure, meter.checkpoints, meter.is_plain)

    def rescue(self, most: int, why: str) -> tuple[bytes, SealedOutput] | None:
        """The beginning of an output that could not be stored: the part that is still in memory."""
        with self._lock:
            if self._writer is not None:
                return None
            self._end_filter()
            data = bytes(self._memory[:most])
            data = data[: encoding.complete_length(data)] if len(data) < self.total else data
            meter = self._new_meter()
            meter.add(data)
            missing = wording.lost_bytes(self.total - len(data), why) if len(data) < self.total else ""
            sha256 = hashlib.sha256(data).hexdigest()
            return data, SealedOutput(meter.size(), sha256, missing, meter.checkpoints, meter.is_plain)

    def discard(self) -> None:
        with self._lock:
            self._closed = True
            if self._writer is not None:
                self._writer.discard()

    def _to_store(self) -> None:
        """Move bytes to the store. Only stored bytes leave memory: if the store fails, the beginning can still be shown."""
        try:
            if self._writer is None:
                self._writer = self._shelf.create(self.id)
            waiting, self._memory = self._memory, bytearray()
            before = self._writer.size
            try:
                self._writer.append(memoryview(waiting))
            finally:
                written = self._writer.size - before
                self._memory = waiting[written:]
                if self._memory:
                    self._hash_ahead = self._hash
                if self._hash_ahead is self._hash:
                    self._hash.update(memoryview(waiting)[:written])
                self._hash = self._hash_ahead
        except StoreError as error:
            self.failure = self.failure or str(error) or type(error).__name__  # never empty: that would mean success
