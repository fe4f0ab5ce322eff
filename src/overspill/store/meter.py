"""Measure an output while its bytes flow through, so that it never has to be in memory whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from overspill.text import encoding, tokens
from overspill.text.lines import count_line_ends
from overspill.types import Size

_SAMPLE = 2048  # bytes tokenized of each stride
_CHECKPOINT = 64 * 1024
_FIRST_SAMPLE = 16 * 1024
_STRIDE = 128 * 1024
_STRIDES = 64  # after this many, strides grow with the output, so that the samples of 2 GiB are only a few MB


class Meter:
    """Counts bytes, characters, lines and tokens of UTF-8 that arrives in pieces."""

    def __init__(self, model: str | None = None) -> None:
        self.bytes = 0
        self._model = model
        self._chars = 0
        self._ends = 0
        self._last: bytes = b""
        self._tail: bytes = b""  # the beginning of a character whose rest has not arrived
        self.checkpoints: list[tuple[int, int, int]] = []
        """(bytes, characters, line ends) at places from which a reader may start to count."""
        self._start = bytearray()  # if the output is no longer than this, its tokens are counted exactly
        self._sampled_bytes = 0
        self._sampled_tokens = 0
        self._next_sample = 0

    def add(self, data: bytes) -> None:
        if not data:
            return
        if self._last == b"\r" and data[:1] == b"\n":
            self._ends -= 1  # the CR before it was the first half of this line end
        self._ends += count_line_ends(data)
        self._last = data[-1:]
        self._count_chars(data)
        self._sample(data)
        self.bytes += len(data)
        if self.bytes - (self.checkpoints[-1][0] if self.checkpoints else 0) >= _CHECKPOINT and self._is_a_clean_place():
            self.checkpoints.append((self.bytes, self._chars, self._ends))

    def _is_a_clean_place(self) -> bool:
        """Neither inside a character nor between a CR and the LF that may follow it."""
        return not self._tail and self._last != b"\r"

    def size(self) -> Size:
        chars = self._chars + len(encoding.decode(self._tail))
        lines = self._ends + (self._last not in (b"", b"\n", b"\r"))
        if self.bytes <= tokens.MAX_EXACT_CHARS:
            counted = tokens.count(encoding.decode(bytes(self._start)), self._model)
            return Size(self.bytes, chars, lines, counted.tokens, counted.estimated)
        return Size(self.bytes, chars, lines, round(self._sampled_tokens * self.bytes / self._sampled_bytes), estimated=True)

    def _count_chars(self, data: bytes) -> None:
        if not self._tail and data.isascii():
            self._chars += len(data)
            return
        data = self._tail + data
        end = encoding.complete_length(data)
        self._chars += len(encoding.decode(data[:end]))
        self._tail = data[end:]

    def _sample(self, data: bytes) -> None:
        if len(self._start) <= tokens.MAX_EXACT_CHARS:
            self._start += data[: tokens.MAX_EXACT_CHARS + 1 - len(self._start)]
        if self.bytes + len(data) <= tokens.MAX_EXACT_CHARS:
            return
        if not self._sampled_bytes:
            self._take(bytes(self._start[:_FIRST_SAMPLE]))
            self._next_sample = _STRIDE
        end = self.bytes + len(data)
        while self._next_sample < end:
            start = max(self._next_sample - self.bytes, 0)
            self._take(data[start : start + _SAMPLE])
            self._next_sample += max(_STRIDE, self._next_sample // _STRIDES)

    def _take(self, sample: bytes) -> None:
        self._sampled_bytes += len(sample)
        self._sampled_tokens += tokens.count(encoding.decode(sample), self._model).tokens


def size_of(content: str, model: str | None = None) -> Size:
    """The size of a string."""
    meter = Meter(model)
    for start in range(0, len(content), 1 << 20):
        meter.add(encoding.encode(content[start : start + (1 << 20)]))
    return meter.size()


def encode_arguments(args: Mapping[str, Any]) -> bytes | None:
    """A call's arguments as JSON: empty if there are none, None if JSON cannot represent them."""
    try:
        return msgspec.json.encode(args) if args else b""
    except (TypeError, ValueError, RecursionError):
        return None


def chars_in(args: Mapping[str, Any]) -> int:
    """How many characters a call's arguments have as JSON."""
    return encoding.count_characters(encode_arguments(args) or b"")
