"""The built-in engine's indexes of a session: each built once, and bounded in memory together."""

from __future__ import annotations

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

    def get(self, sha256: str, reader: Reader, work: Work | None = None) -> Index:
        """Blocks. A caller that asks for an index that is being built waits for it. With limited work, it is of the beginning
        of an output that is larger than that."""
        most = work.read if work else reader.size
        key = sha256 if reader.size <= most else f"{sha256} to {most}"
        with self._recent.making(key):
            return self._recent.get(key) or self._build(key, reader.buffer() if key == sha256 else reader.read(0, most), work)

    def _build(self, key: str, data: bytes | memoryview, work: Work | None) -> Index:
        from overspill.lexical.index import build  # noqa: PLC0415  # most sessions ask nothing, and the engine takes long to import

        # Frees the memory of older ones before this one takes its own.
        index = self._recent[key] = build(data, max_memory=self._max_bytes)
        index.prepare(work)
        return index
