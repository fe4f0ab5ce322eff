"""Measure an output while its bytes flow through, so it never needs to be in memory whole."""

from __future__ import annotations

from overspill.text import encoding, tokens
from overspill.text.lines import count_line_ends
from overspill.types import Size

_CHECKPOINT = 64 * 1024
_SAMPLE = 256  # bytes tokenized of each stride: many short samples are as good as a few long ones with twice the bytes
_STRIDE = 8 * 1024
_STRIDES = 64  # after this many, strides are twice as long, so that the samples of 2 GiB are an eighth of a MB
_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes inside a character
_MIN_EXACT = 32 * 1024  # bytes whose tokens are always counted exactly, because that takes no time


class Meter:
    """Counts bytes, characters, lines and tokens of UTF-8 that arrives in pieces.

    `exact_bytes`: the most bytes of an output whose exact number of tokens may decide something. Above that, it is estimated.
    """

    def __init__(self, model: str | None = None, exact_bytes: int = tokens.MAX_EXACT_CHARS) -> None:
        self.bytes = 0
        self._chars = 0
        self._ends = 0
        self._last: bytes = b""
        self._tail: bytes = b""  # the beginning of a character whose last bytes have not arrived
        self.checkpoints: list[tuple[int, int, int]] = []
        """(bytes, characters, line ends) at places from which a reader may start to count."""
        self._tokens = _TokenMeter(model, min(max(exact_bytes, _MIN_EXACT), tokens.MAX_EXACT_CHARS))
        self._size: Size | None = None
        self._is_plain = True

    @property
    def is_plain(self) -> bool:
        """Whether everything so far is valid UTF-8 without NUL, which rules out other formats."""
        return self._is_plain and not self._tail

    def add(self, data: bytes, chars: int | None = None) -> None:
        """Measure more bytes. `chars`: how many characters they are, if known."""
        if not data:
            return
        self._size = None
        if self._last == b"\r" and data[:1] == b"\n":
            self._ends -= 1  # the CR before it was the first half of this line end
        self._ends += count_line_ends(data)
        self._last = data[-1:]
        self._is_plain = self._is_plain and b"\0" not in data
        if chars is None or self._tail:
            self._count_chars(data)
        else:
            self._chars += chars
        self._tokens.add(data)
        self.bytes += len(data)
        is_clean = not self._tail and self._last != b"\r"  # neither inside a character nor between a CR and its LF
        if is_clean and self.bytes - (self.checkpoints[-1][0] if self.checkpoints else 0) >= _CHECKPOINT:
            self.checkpoints.append((self.bytes, self._chars, self._ends))

    def size(self) -> Size:
        """The size of everything so far. Counting tokens takes a while, so it is done only once."""
        if self._size is None:
            chars = self._chars + len(encoding.decode(self._tail))
            lines = self._ends + (self._last not in (b"", b"\n", b"\r"))
            counted = self._tokens.count()
            self._size = Size(self.bytes, chars, lines, counted.tokens, counted.estimated)
        return self._size

    def _count_chars(self, data: bytes) -> None:
        if not self._tail and data.isascii():
            self._chars += len(data)
            return
        data = self._tail + data
        end = encoding.complete_length(data)
        try:
            self._chars += len(data[:end].decode("utf-8"))
        except UnicodeDecodeError:
            self._is_plain = False
            self._chars += encoding.count_characters(data[:end])
        self._tail = data[end:]


class _TokenMeter:
    """Holds an output back to count its tokens exactly. Once there is too much, estimates from a sample of each stride."""

    def __init__(self, model: str | None, exact_bytes: int) -> None:
        self._model = model
        self._exact_bytes = exact_bytes
        self._start: bytearray | None = bytearray()
        self._bytes = 0  # seen by the sampler
        self._stride = _STRIDE
        self._next_at = 0  # where the next stride begins
        self._wanted = 0  # bytes for the sample of this stride
        self._samples = bytearray()  # from all strides of the current length, the first of which begins at `same_since`
        self._same_since = 0
        self._estimate = 0.0  # the tokens before those strides

    def add(self, data: bytes) -> None:
        if self._start is not None:
            if len(self._start) + len(data) <= self._exact_bytes:
                self._start += data
                return
            data, self._start = bytes(self._start) + data if self._start else data, None
        if self._wanted:  # the last sample is not complete
            self._take(data[: self._wanted])
        end = self._bytes + len(data)
        while self._next_at < end:
            at = self._next_at
            if at == self._stride * _STRIDES:
                self._estimate += self._estimate_since(at)
                self._same_since, self._stride = at, self._stride * 2
                self._samples.clear()
            self._next_at, self._wanted = at + self._stride, _SAMPLE
            self._take(data[at - self._bytes : at - self._bytes + _SAMPLE])
        self._bytes = end

    def count(self) -> tokens.Count:
        if self._start is not None:
            return tokens.count(encoding.decode(bytes(self._start)), self._model)
        return tokens.Count(round(self._estimate + self._estimate_since(self._bytes)), estimated=True)

    def _take(self, piece: bytes) -> None:
        """Add a piece to the sample, without the incomplete characters at both ends."""
        self._samples += piece.lstrip(_CONTINUATION) if self._wanted == _SAMPLE else piece
        self._wanted -= len(piece)
        if not self._wanted and not piece.isascii():
            end = bytes(self._samples[-4:])
            del self._samples[len(self._samples) - len(end) + encoding.complete_length(end) :]

    def _estimate_since(self, end: int) -> float:
        if not self._samples:
            return 0.0
        counted = tokens.count(encoding.decode(bytes(self._samples)), self._model)
        return counted.tokens / len(self._samples) * (end - self._same_since)


def size_of(content: str, model: str | None = None) -> Size:
    """The size of a string."""
    meter = Meter(model)
    for start in range(0, len(content), 1 << 20):
        meter.add(encoding.encode(content[start : start + (1 << 20)]))
    return meter.size()
