"""The redacted view of an output: what a model reads instead of the stored bytes, and where each byte comes from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from overspill.reading.positions import View
from overspill.redaction.redactor import Redactor, Replacement
from overspill.store.protocols import Reader
from overspill.store.readers import Sink
from overspill.text.encoding import count_characters
from overspill.types import Size

_BLOCK_BYTES = 1 << 20


class RedactedView(View):
    """Positions in a redacted text. Lines are the same as in the stored bytes; bytes and characters are not."""

    def __init__(self, reader: Reader, stored_bytes: int, found: Iterable[Replacement]) -> None:
        super().__init__(reader)
        self._stored_bytes = stored_bytes
        self._stored, self._shown = [(0, 0)], [(0, 0)]
        shift = 0
        for each in found:
            start = each.start + shift
            self._stored.append((each.start, each.end))
            self._shown.append((start, start + len(each.mark)))
            shift = self._shown[-1][1] - each.end

    @property
    def stored_bytes(self) -> int:
        return self._stored_bytes

    def to_stored(self, byte: int, *, is_end: bool = False) -> int:
        return _convert(byte, self._shown, self._stored, is_end)

    def from_stored(self, byte: int, *, is_end: bool = False) -> int:
        return _convert(byte, self._stored, self._shown, is_end)

    def cut_outside(self, start: int, end: int) -> int:
        """Moves the end of a piece out of a mark: before it or, if the piece begins with the mark, after it."""
        first, last = self._shown[bisect_right(self._shown, end, key=lambda span: span[0]) - 1]
        return end if not first < end < last else first if first > start else last

    def hides(self, start: int, end: int) -> bool:
        return any(first < end and last > start for first, last in self._shown[1:])


def _convert(byte: int, spans: list[tuple[int, int]], others: list[tuple[int, int]], is_end: bool) -> int:
    """Converts a position: inside a span to the other span's start or end, outside to the same distance from the last span."""
    at = bisect_right(spans, byte, key=lambda span: span[0]) - 1
    (start, end), (other_start, other_end) = spans[at], others[at]
    if byte == start:
        return other_start
    if byte < end:
        return other_end if is_end else other_start
    return other_end + byte - end


class RedactedText(Struct, frozen=True):
    reader: Reader
    view: RedactedView
    size: Size


def redact_text(redactor: Redactor, reader: Reader, size: Size, sha256: str = "") -> RedactedText | None:
    """Redact a text; None if it has no secrets. Blocks. Searches the whole text at once, so that no secret is cut."""
    data = reader.buffer()
    found = redactor.find(data, sha256)
    if not found:
        return None
    with Sink() as sink:
        last = 0
        for end, mark, following in [*((each.start, each.mark, each.end) for each in found), (len(data), b"", 0)]:
            for start in range(last, end, _BLOCK_BYTES):
                sink.add(bytes(data[start : min(start + _BLOCK_BYTES, end)]))
            sink.add(mark)
            last = following
        shown = sink.reader()
    hidden = sum(count_characters(bytes(data[each.start : each.end])) - len(each.mark) for each in found)
    size = replace(size, bytes=shown.size, chars=size.chars - hidden)
    return RedactedText(shown, RedactedView(shown, len(data), found), size)
