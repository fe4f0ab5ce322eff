"""The built-in engine's indexes of a session: each built once, and bounded in memory together."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from overspill.extraction.cache import Recent
from overspill.lexical.work import Work
from overspill.store.protocols import Reader

if TYPE_CHECKING:
    from overspill.lexical.index import Index

MAX_INDEX_BYTES = 256 << 20
"""Memory that the indexes of one session may take together. An index that a question still uses is freed after it."""


class EngineIndexes:
    """Indexes by the SHA-256 of their output. Several threads may ask for one."""

    def __init__(self, max_bytes: int = MAX_INDEX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._recent: Recent[str, Index] = Recent(max_bytes, lambda index: index.memory_bytes)
        self._building: dict[str, Lock] = {}
        self._lock = Lock()

    def get(self, sha256: str, reader: Reader, work: Work | None = None) -> Index:
        """Blocks. A caller that asks for an index that is being built waits for it. With limited work, it is of the beginning
        of an output that is larger than that."""
        most = work.read if work else reader.size
        key = sha256 if reader.size <= most else f"{sha256} to {most}"
        with self._lock:
            building = self._building.setdefault(key, Lock())
        try:
            with building:
                return self._find(key) or self._build(key, reader.buffer() if key == sha256 else reader.read(0, most), work)
        finally:
            with self._lock:
                self._building.pop(key, None)

    def _find(self, sha256: str) -> Index | None:
        with self._lock:
            return self._recent.get(sha256)

    def _build(self, sha256: str, data: bytes | memoryview, work: Work | None) -> Index:
        from overspill.lexical.index import build  # noqa: PLC0415  # most sessions ask nothing, and the engine takes long to import

        index = build(data, max_memory=self._max_bytes)
        with self._lock:  # frees the memory of older ones before this one takes its own
            self._recent[sha256] = index
        index.prepare(work)
        return index
