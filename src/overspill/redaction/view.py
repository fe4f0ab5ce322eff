"""The redacted view of a text: what a model reads in place of the stored bytes, and where each of its bytes comes from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from overspill.decoding.limits import Sink
from overspill.reading.positions import View
from overspill.redaction.redactor import Redactor, Replacement, apply
from overspill.store.protocols import Reader
from overspill.text.encoding import count_characters
from overspill.types import Size

_MARGIN_BYTES = 128 << 10
"""Around a part of a text, looked at too: a known value of the largest size in its longest encoding is found at any border."""
_BLOCK_BYTES = 1 << 20

Read: TypeAlias = Callable[[int, int], bytes]


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
        """Never inside a mark: before it, or after it if it comes first."""
        first, last = self._shown[bisect_right(self._shown, end, key=lambda span: span[0]) - 1]
        return end if not first < end < last else first if first > start else last

    def hides(self, start: int, end: int) -> bool:
        return any(first < end and last > start for first, last in self._shown[1:])


def _convert(byte: int, spans: list[tuple[int, int]], others: list[tuple[int, int]], is_end: bool) -> int:
    """Inside a span, its start or its end in the other text. Outside, as far behind the span before it."""
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
    found: list[Replacement]
    size: Size


def redact_text(redactor: Redactor, reader: Reader, size: Size) -> RedactedText | None:
    """None if there is nothing to hide. Blocks. The text is searched as a whole, so that no border can hide a value."""
    data = reader.buffer()
    found = redactor.find(data)
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
    return RedactedText(shown, RedactedView(shown, len(data), found), found, size)


class RedactedParts:
    """Reads parts of a text with marks in them, without searching all of it: for what shows only some of a large output."""

    def __init__(self, redactor: Redactor, read: Read, size: int) -> None:
        self._redactor = redactor
        self._read = read
        self._size = size
        self.found: set[Replacement] = set()
        """In the parts that were read, by their places in the text."""

    def read(self, start: int, end: int) -> bytes:
        """Positions are those of the stored bytes, so that the result may be longer or shorter than the range."""
        start, end = max(0, start), min(end, self._size)
        low, high = max(0, start - _MARGIN_BYTES), min(self._size, end + _MARGIN_BYTES)
        data = self._read(low, high)
        found = self._redactor.find(data)
        inside = [each for each in found if each.end > start - low and each.start < end - low]
        self.found.update(replace(each, start=each.start + low, end=each.end + low) for each in inside)
        return apply(data, inside, start - low, end - low)
