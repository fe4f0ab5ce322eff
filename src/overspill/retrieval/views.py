"""The text in stored outputs. Each output is decoded once, and those used last are kept while there is room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from overspill.decoding import decode
from overspill.errors import NotText
from overspill.lexical.index import Work
from overspill.reading.positions import View
from overspill.redaction.redactor import Redactor
from overspill.redaction.view import redact_text
from overspill.store.meter import Meter
from overspill.store.protocols import Reader
from overspill.store.readers import read_blocks
from overspill.store.recent import Recent
from overspill.types import Decoding, Kept, Size
from overspill.wording import retrieval as wording

if TYPE_CHECKING:
    from overspill.lexical.index import Index

MAX_VIEW_BYTES = 512 << 20
"""Decoded text that one session holds in temporary files. Text that is still in use is freed afterwards."""
_ENTRY_BYTES = 1024  # also counts entries without text, so that their number stays bounded


class TextView(Struct, frozen=True):
    """Text to search: the stored bytes themselves, or what was decoded from them."""

    reader: Reader
    size: Size
    positions: View
    decoding: Decoding | None = None
    key: str = ""
    """The key for caching it: the SHA-256 of the stored bytes, and whether secrets are hidden."""


def describe_gaps(kept: Kept, text: TextView) -> list[str]:
    """What an answer about the whole text must mention: which parts of the output are missing, and how it was decoded."""
    missing = [f"[{wording.incomplete(kept)}]"] if kept.missing else []
    return [*missing, *wording.decoding_notes(text.decoding)]


class TextViews:
    """Recent views of texts, by the SHA-256 of the stored bytes. Several threads may ask for one."""

    def __init__(self) -> None:
        self._recent: Recent[str, TextView | Decoding | NotText] = Recent(MAX_VIEW_BYTES, _weigh)

    def get(self, kept: Kept, reader: Reader, positions: View) -> TextView:
        """The view of an output. Blocks, also while another caller decodes it. Raises NotText, every time, if it has no text."""
        with self._recent.making(kept.sha256 or kept.id):
            found = (self._recent.get(kept.sha256) if kept.sha256 else None) or self._decode(kept, reader)
        if isinstance(found, NotText):
            raise NotText(found.what, found.advice)
        if isinstance(found, TextView):
            return found
        assert isinstance(found, Decoding)
        return TextView(reader, kept.size, positions, found if found.remarks else None, kept.sha256)

    def redact(self, kept: Kept, text: TextView, redactor: Redactor | None) -> TextView:
        """The text with marks in place of its secrets. Blocks. A text is searched for secrets only once."""
        if redactor is None:
            return text
        formats = text.decoding.formats if text.decoding else ()
        key = " ".join((kept.sha256 or kept.id, "redacted", *formats))
        with self._recent.making(key):
            shown = self._recent.get(key) if kept.sha256 else None
            if isinstance(shown, TextView):
                return shown
            found = redact_text(redactor, text.reader, text.size, " ".join((kept.sha256, *formats)) if kept.sha256 else "")
            if found is None:
                return text
            shown = TextView(found.reader, found.size, found.view, text.decoding, key)
            if kept.sha256:
                self._recent[key] = shown
            return shown

    def _decode(self, kept: Kept, reader: Reader) -> TextView | Decoding | NotText:
        """The decoded text, or how it was decoded if it was plain text: that reader belongs to the caller and is not cached."""
        try:
            found = decode(reader, is_plain=kept.is_plain)
        except NotText as error:
            outcome = error
        else:
            text, decoding = found.reader, found.decoding
            outcome = TextView(text, _measure(text), View(text), decoding, kept.sha256) if decoding.formats else decoding
        if kept.sha256:  # an output that is still growing has none
            self._recent[kept.sha256] = outcome
        return outcome


def _measure(reader: Reader) -> Size:
    meter = Meter()
    for block in read_blocks(reader):
        meter.add(block)
    return meter.size()


def _weigh(outcome: TextView | Decoding | NotText) -> int:
    return _ENTRY_BYTES + (outcome.reader.size if isinstance(outcome, TextView) else 0)


MAX_INDEX_BYTES = 256 << 20
"""Memory that the indexes of one session may take together. An index that is still in use is freed afterwards."""


class EngineIndexes:
    """Indexes by the SHA-256 of their output. Several threads may ask for one."""

    def __init__(self, max_bytes: int = MAX_INDEX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._recent: Recent[str, Index] = Recent(max_bytes, lambda index: index.memory_bytes)

    def get(self, sha256: str, reader: Reader, work: Work | None = None) -> Index:
        """The index of an output. Blocks, also while another caller builds it. Limited work covers only its beginning."""
        most = work.read if work else reader.size
        key = sha256 if reader.size <= most else f"{sha256} to {most}"
        with self._recent.making(key):
            if index := self._recent.get(key):
                return index
            from overspill.lexical.index import build  # noqa: PLC0415  # most sessions never ask, and the engine takes long to import

            data = reader.buffer() if key == sha256 else reader.read(0, most)
            # Frees the memory of older ones before this one takes its own.
            index = self._recent[key] = build(data, max_memory=self._max_bytes)
            index.prepare(work)
            return index
