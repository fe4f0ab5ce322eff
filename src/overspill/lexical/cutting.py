"""Cuts a reading into records, and texts inside its strings like texts of their own."""

from __future__ import annotations

from mmap import mmap

from overspill.lexical import reading
from overspill.lexical.kinds import LINES, recognise
from overspill.lexical.kinds.kind import Kind
from overspill.lexical.outline import Outline, Source
from overspill.tables.table import Text

COLOUR_START = b"\x1b["
_MAX_EMBEDDED_DEPTH = 4
_ESCAPED_LETTER = b"\\u"


class Cutting:
    """Appends records to an outline. Escapes in embedded texts are overwritten, in `writable` (the same text) or in a copy."""

    def __init__(self, text: Text, kind: Kind, fill: bytes, writable: bytearray | mmap | None) -> None:
        self.text = text
        self.kind = kind
        self.fill = fill
        self.outline = Outline()
        self._writable = writable

    def cut(self, start: int, end: int) -> Outline:
        self._cut(self.kind, start, end, 0)
        return self._finish()

    def cut_inside_string(self, start: int, end: int) -> Outline:
        """For a part of the text that is inside a long string."""
        self._cut_embedded(start, end, 1)
        return self._finish()

    def _finish(self) -> Outline:
        self.outline.tables.sort(key=lambda table: table.first)
        return self.outline

    def _cut(self, kind: Kind, start: int, end: int, depth: int) -> None:
        kind.cut(self.text, start, end, self.outline, lambda a, b: self._cut_embedded(a, b, depth + 1))

    def _cut_embedded(self, start: int, end: int, depth: int) -> None:
        if depth >= _MAX_EMBEDDED_DEPTH:
            self._cut(LINES, start, end, depth)
            return
        if self.fill:
            text = self._make_writable()
            text[start:end] = reading.unescape(bytes(text[start:end]), self.fill)
            if text.find(_ESCAPED_LETTER, start, end) >= 0 and recognise(text, start, end).traits.has_string_escapes:
                text[start:end] = reading.spell_letters(text, start, end, self.fill)
        self._cut(recognise(self.text, start, end), start, end, depth)

    def _make_writable(self) -> bytearray | mmap:
        if self._writable is None:
            self.text = self._writable = bytearray(self.text)
        return self._writable


def cut_whole(source: Source, kind: Kind) -> tuple[Text, Outline, bytes]:
    """The reading, its records, and the byte that pads it. The reading is a copy only if something must be overwritten."""
    read = kind.read or (reading.strip_colours if source.find(COLOUR_START) >= 0 else None)
    fill = reading.find_filler(source) if read else b""
    text = read(source, len(source), fill) if read and fill else source
    cutting = Cutting(text, kind, fill, text if isinstance(text, bytearray) else None)
    outline = cutting.cut(0, len(source))
    return cutting.text, outline, fill
