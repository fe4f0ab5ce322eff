"""The text in stored outputs. Each output is decoded once, and those used last are kept while there is room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from overspill.decoding import decode
from overspill.errors import NotText
from overspill.extraction.cache import Recent
from overspill.lexical.index import Work
from overspill.reading.positions import View
from overspill.store.meter import Meter
from overspill.store.protocols import Reader
from overspill.types import Decoding, Kept, Size
from overspill.wording import retrieval as wording

MAX_VIEW_BYTES = 512 << 20
"""Decoded text that one session holds in temporary files. Text that a question still uses is freed after it."""
_BLOCK_BYTES = 1 << 20
_ENTRY_BYTES = 1024  # also counts what has no text, so that there is never an endless number of entries


class TextView(Struct, frozen=True):
    """Text to search: the stored bytes themselves, or what was decoded from them."""

    reader: Reader
    size: Size
    positions: View
    decoding: Decoding | None = None


def describe_gaps(kept: Kept, text: TextView) -> list[str]:
    """What an answer about all of the text has to say: what is missing of the output, and how it was decoded."""
    missing = [f"[{wording.incomplete(kept)}]"] if kept.missing else []
    return [*missing, *wording.decoding_notes(text.decoding)]


class _Outcome(Struct, frozen=True):
    """What decoding an output gave. The reader of an output that needs none belongs to others and is not remembered."""

    decoded: TextView | None = None
    remarks: Decoding | None = None
    error: NotText | None = None


class TextViews:
    """By the SHA-256 of the stored bytes. Several threads may ask for one."""

    def __init__(self, max_bytes: int = MAX_VIEW_BYTES) -> None:
        self._recent: Recent[str, _Outcome] = Recent(max_bytes, _weigh)

    def get(self, kept: Kept, reader: Reader, positions: View) -> TextView:
        """Blocks. Raises NotText, every time, if there is no text in it. A caller that asks for a view that is being decoded
        waits for it."""
        with self._recent.making(kept.sha256 or kept.id):
            found = (self._recent.get(kept.sha256) if kept.sha256 else None) or self._decode(kept, reader)
        if found.error:
            raise NotText(found.error.what, found.error.advice)
        return found.decoded or TextView(reader, kept.size, positions, found.remarks)

    def _decode(self, kept: Kept, reader: Reader) -> _Outcome:
        try:
            found = decode(reader, is_plain=kept.is_plain)
        except NotText as error:
            outcome = _Outcome(error=error)
        else:
            text, decoding = found.reader, found.decoding
            if decoding.formats:
                outcome = _Outcome(TextView(text, _measure(text), View(text), decoding))
            else:
                outcome = _Outcome(remarks=decoding if decoding.remarks else None)
        if kept.sha256:  # an output that is still growing has none
            self._recent[kept.sha256] = outcome
        return outcome


def _measure(reader: Reader) -> Size:
    meter = Meter()
    for start in range(0, reader.size, _BLOCK_BYTES):
        meter.add(reader.read(start, start + _BLOCK_BYTES))
    return meter.size()


def _weigh(outcome: _Outcome) -> int:
    return _ENTRY_BYTES + (outcome.decoded.reader.size if outcome.decoded else 0)


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
