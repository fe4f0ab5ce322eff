"""The writer of every kind of store: it counts against the quota, and adds parts to one output until that is complete."""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import RLock
from typing import Protocol

from overspill.store import rules
from overspill.store.quota import OutputQuota


class OutputParts(Protocol):
    """Where the parts of one output go."""

    size: int = 0
    """How many bytes are stored."""
    max_bytes: int = sys.maxsize
    """Of one part."""

    def add(self, data: memoryview) -> None:
        """Store all of it, or raise StoreError. `size` grows by what is stored. Where an output is not there before its first
        part, that creates it, or finds that the id is taken."""
        ...

    def complete(self) -> None: ...
    def remove(self) -> None:
        """What was added."""
        ...

    def close(self) -> None:
        """Leave what is there."""


class OutputWriter:
    """`check` raises StoreError if the session cannot write any more. A cancelled job may be discarded while a worker still
    appends to it."""

    def __init__(
        self,
        session: str,
        id: str,
        parts: OutputParts,
        *,
        quota: OutputQuota,
        check: Callable[[], object],
        ended: Callable[[str], None],
    ) -> None:
        self._session = session
        self._id = id
        self._parts = parts
        self._quota = quota
        self._check = check
        self._ended = ended
        self._is_open = True
        self._is_committed = False
        self._mutex = RLock()

    @property
    def size(self) -> int:
        return self._parts.size

    def append(self, data: bytes | memoryview) -> None:
        view = rules.bytes_of(data)
        with self._mutex:
            self._check_open()
            before = self.size
            granted = self._quota.take(self._session, self._id, view.nbytes)
            try:
                for start in range(0, granted, self._parts.max_bytes):
                    self._parts.add(view[start : min(granted, start + self._parts.max_bytes)])
            finally:
                self._quota.give_back(self._session, self._id, granted - (self.size - before))
        if granted < view.nbytes:
            raise self._quota.exhausted_error(view.nbytes - granted)

    def commit(self) -> None:
        with self._mutex:
            if self._is_committed:
                return
            self._check_open()
            self._parts.complete()
            self._is_committed = True
            self.abandon()

    def discard(self) -> None:
        with self._mutex:
            if not self._is_open:
                return
            self._parts.remove()
            self._quota.release(self._session, self._id)
            self.abandon()

    def abandon(self) -> None:
        """Stop writing and leave what is there."""
        with self._mutex:
            if self._is_open:
                self._is_open = False
                self._parts.close()
                self._ended(self._id)

    def _check_open(self) -> None:
        if not self._is_open:
            raise rules.closed_error("output")
        self._check()
