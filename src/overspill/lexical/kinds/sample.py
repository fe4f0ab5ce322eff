"""Samples of a text, from which its kind is recognised."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise

from overspill.tables.table import Text
from overspill.text.encoding import decode
from overspill.text.lines import FILLERS

_SAMPLE_BYTES = 48_000
_ENDING_BYTES = 600
MAX_LINES = 800
_MIN_LINES = 8
_MAX_LINE_CHARS = 400
"""The rest of a line is ignored: a line that begins like a log entry is one."""
_WORD = re.compile(r"[(“\"'*_`]{0,3}[A-Za-z][a-z]*[,.;:!?)”\"'*_`]{0,3}$")
_WITHIN = re.compile(r"[a-z,]\s*+$")
_GOES_ON = re.compile(r"\(?[a-z]+")
_MIN_WRAPPED_CHARS = 40
_MAX_ALIKE = 2
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)(\s*+\w)?")
_MIN_FENCES = 4
_MIN_UNFENCED_SHARE = 0.25
"""With less outside of fenced examples, the text is what is fenced."""
_MIN_PROSE_WORD_SHARE = 0.68
"""Share of plain words among the tokens: contracts and articles have 0.7 to 0.95, logs below 0.65."""


class Sample:
    """The beginning of a text and, of a long text, some lines from its middle."""

    def __init__(self, data: Text, start: int, end: int, most_lines: int = MAX_LINES) -> None:
        self.data = data
        self.start = start
        self.end = end
        self._most_lines = most_lines

    @cached_property
    def head(self) -> bytes:
        return self._read(self.start)

    @cached_property
    def beginning(self) -> bytes:
        """All of the head, or, where fewer lines are asked for, less of it."""
        return self.head[: self._most_bytes]

    @cached_property
    def _most_bytes(self) -> int:
        most_bytes = _SAMPLE_BYTES * self._most_lines // MAX_LINES
        return _SAMPLE_BYTES if self.head.count(b"\n", 0, most_bytes) < _MIN_LINES else most_bytes

    @property
    def ending(self) -> bytes:
        return self._read(max(self.start, self.end - _ENDING_BYTES))

    @cached_property
    def whole_lines(self) -> list[str]:
        """Lines that are not blank."""
        lines = self._split_lines(self.beginning)
        if self.end - self.start > 3 * self._most_bytes:
            lines += self._split_lines(self._read(self.start + (self.end - self.start) // 2, self._most_bytes))[1:-1]
        return lines

    @cached_property
    def lines(self) -> list[str]:
        """The same, but only the beginning of long ones."""
        return [line[:_MAX_LINE_CHARS] for line in self.whole_lines]

    @cached_property
    def unfenced(self) -> list[str]:
        """The same without the fenced examples of a manual in Markdown."""
        if sum(_FENCE.match(line) is not None for line in self.lines) < _MIN_FENCES:
            return self.lines
        outside, is_inside = list[str](), False
        for line in self.lines:
            fence = _FENCE.match(line)
            if fence is None and not is_inside:
                outside.append(line)
            elif fence is not None:  # one that names a language always opens an example: its end may be in no sample
                is_inside = bool(fence[1]) or not is_inside
        return outside if len(outside) >= _MIN_UNFENCED_SHARE * len(self.lines) else self.lines

    @cached_property
    def is_wordy(self) -> bool:
        tokens = [token for line in self.lines for token in line.split()]
        return sum(map(bool, map(_WORD.match, tokens))) / max(1, len(tokens)) >= _MIN_PROSE_WORD_SHARE

    @cached_property
    def wrapped_share(self) -> float:
        """The share of lines that continue on the next: they end within a sentence, and the next begins in one.

        Lines that begin alike do not count: a program wrote them.
        """
        openings = Counter(
            found[0]
            for line, following in pairwise(self.whole_lines)
            if len(line) >= _MIN_WRAPPED_CHARS and _WITHIN.search(line) and (found := _GOES_ON.match(following))
        )
        return min(openings.total(), _MAX_ALIKE * len(openings)) / max(1, len(self.lines))

    def share(self, match: Callable[[str], re.Match[str] | None], lines: list[str] | None = None) -> float:
        """The share of lines that match: of all, unless told of which."""
        among = self.lines if lines is None else lines
        return sum(map(bool, map(match, among))) / max(1, len(among))

    def _read(self, start: int, most_bytes: int = _SAMPLE_BYTES) -> bytes:
        """Without the filler bytes of a reading."""
        return bytes(self.data[start : min(self.end, start + most_bytes)]).translate(None, FILLERS)

    def _split_lines(self, sample: bytes) -> list[str]:
        return [line for line in decode(sample).splitlines() if line.strip()][: self._most_lines]
