"""Kinds of text: how each is recognised, read and cut, and what the other parts of the engine must know of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeAlias

from msgspec import Struct

from overspill.lexical.kinds.lines import find_line_start
from overspill.lexical.outline import Outline
from overspill.tables.table import Text
from overspill.text.encoding import decode
from overspill.text.lines import FILLERS
from overspill.text.regex import Match, regex

_HEAD_BYTES = 48_000
_ENDING_BYTES = 600
MAX_LINES = 800
_BYTES_PER_LINE = 60
_MIN_LINES = 8
_MAX_LINE_CHARS = 400
"""The rest of a line is ignored. The beginning is enough to recognise a log entry."""
_WORD = regex(r"[(“\"'*_`]{0,3}[A-Za-z][a-z]*[,.;:!?)”\"'*_`]{0,3}$")
_WITHIN = regex(r"[a-z,]\s*+$")
_GOES_ON = regex(r"\(?[a-z]+")
_MIN_WRAPPED_CHARS = 40
_MAX_ALIKE = 2
_FENCE = regex(r"\s{0,3}(?:```|~~~)(\s*+\w)?")
_MIN_FENCES = 4
_MIN_UNFENCED_SHARE = 0.25
"""With less text outside fenced examples, the examples decide what kind of text it is."""
_MIN_PROSE_WORD_SHARE = 0.68
"""Share of plain words among the tokens: contracts and articles have 0.7 to 0.95, logs below 0.65."""


class Sample:
    """The beginning of the text and, if it is long, some lines from its middle."""

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
        """The head, or less of it if fewer lines were requested."""
        return self.head[: self._most_bytes]

    @cached_property
    def _most_bytes(self) -> int:
        most_bytes = _BYTES_PER_LINE * self._most_lines
        return _HEAD_BYTES if self.head.count(b"\n", 0, most_bytes) < _MIN_LINES else most_bytes

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
        """Lines that are not blank, with only the beginning of long ones."""
        return [line[:_MAX_LINE_CHARS] for line in self.whole_lines]

    @cached_property
    def unfenced(self) -> list[str]:
        """These lines without the fenced examples of a manual in Markdown."""
        if sum(_FENCE.match(line) is not None for line in self.lines) < _MIN_FENCES:
            return self.lines
        outside, is_inside = list[str](), False
        for line in self.lines:
            fence = _FENCE.match(line)
            if fence is None and not is_inside:
                outside.append(line)
            elif fence is not None:  # a fence with a language always opens an example: the sample may lack the previous end
                is_inside = bool(fence[1]) or not is_inside
        return outside if len(outside) >= _MIN_UNFENCED_SHARE * len(self.lines) else self.lines

    @cached_property
    def is_wordy(self) -> bool:
        tokens = Counter(" ".join(self.lines).split())
        words = sum(times for token, times in tokens.items() if _WORD.match(token))
        return words / max(1, tokens.total()) >= _MIN_PROSE_WORD_SHARE

    @cached_property
    def wrapped_share(self) -> float:
        """The share of lines that continue on the next one: they end mid-sentence, and the next line begins mid-sentence.

        Lines that begin alike do not count: a program wrote them.
        """
        openings = Counter(
            found[0]
            for line, following in pairwise(self.whole_lines)
            if len(line) >= _MIN_WRAPPED_CHARS and _WITHIN.search(line) and (found := _GOES_ON.match(following))
        )
        return min(openings.total(), _MAX_ALIKE * len(openings)) / max(1, len(self.lines))

    def share(self, match: Callable[[str], Match[str] | None], lines: list[str] | None = None) -> float:
        """The share of `lines` that match; by default, of all lines."""
        among = self.lines if lines is None else lines
        return sum(map(bool, map(match, among))) / max(1, len(among))

    def _read(self, start: int, most_bytes: int = _HEAD_BYTES) -> bytes:
        """The text between these positions, without the filler bytes that replaced tags and colours."""
        return bytes(self.data[start : min(self.end, start + most_bytes)]).translate(None, FILLERS)

    def _split_lines(self, sample: bytes) -> list[str]:
        return [line for line in decode(sample).splitlines() if line.strip()][: self._most_lines]


CutEmbedded: TypeAlias = Callable[[int, int], None]
"""Cuts a span of embedded text, which may be of any kind."""
Layout: TypeAlias = Literal[
    "document",
    "documents",
    "rows",
    "aligned",
    "page",
    "elements",
    "commits",
    "events",
    "hunks",
    "results",
    "definitions",
    "paragraphs",
    "text",
]
"""What the text consists of, for code that reads it as tables, an outline or a page. `document` is one JSON document,
`documents` has one for each line; columns are `aligned` with spaces, and a web `page` has tags."""


class Traits(Struct, frozen=True):
    is_celled: bool = False
    """Whether it has cells. A term that fills a cell counts more."""
    is_code: bool = False
    """Whether keywords represent what people ask for: `def` for functions."""
    has_definitions: bool = False
    """Whether records below a requested definition belong to it instead of being further definitions of that kind."""
    is_program_output: bool = False
    """Whether programs write it while they run. In other texts, "error" is only a word, unless something visibly gives up."""
    is_log: bool = False
    """Whether it reports events in order. The marks of a test runner are evidence, and the newest event is at one end."""
    has_telling_lines: bool = False
    """Whether a list may show the matching line of each record instead of fewer records."""
    is_running_text: bool = False
    """Whether people wrote it for people. A word such as "error" then reports nothing."""
    has_context: bool = False
    """Whether the answer may be next to a matching record, such as in the next turn of a conversation."""
    has_topics: bool = False
    """Whether everything below a label, such as a thread, a section or a function, is about one thing."""
    has_replies: bool = False
    """Whether labels are messages in threads, which reply to each other."""
    is_markup: bool = False
    """Whether runs of white space in it mean nothing."""
    has_members: bool = False
    """Whether a record has named members. An answer can show some of them without the others."""
    has_string_escapes: bool = False
    """Whether letters in its strings may be escaped."""
    has_one_header: bool = False
    """Whether a first row names the columns of all rows, up to a blank line."""
    memory_per_byte: int = 1
    """Bytes of memory per byte of text that the index takes."""
    layout: Layout = "text"


class Kind(Struct, frozen=True):
    name: str
    recognise: Callable[[Sample], bool]
    cut: Callable[[Text, int, int, Outline, CutEmbedded], None]
    traits: Traits = Traits()
    read: Callable[[Text, int, bytes], Text] | None = None
    """Makes its reading, padded with the given byte. By default, a reading only leaves out colours."""
    find_start: Callable[[bytes], int] = find_line_start
    """Where a record may begin in a stretch from the middle of the text, or -1."""
    find_hidden: Callable[[Text], Iterable[tuple[int, int]]] | None = None
    """Finds the spans that a reader does not see."""
