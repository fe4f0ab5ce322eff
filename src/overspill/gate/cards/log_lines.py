"""The lines of a log, counted by kind, and where in it something failed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, islice

from msgspec import Struct

from overspill.gate.cards.card import MAX_LINE_CHARS
from overspill.gate.cards.sample import OutputSample, draw
from overspill.lexical.cutting import COLOUR_START
from overspill.lexical.failures import find_giving_up, find_reports
from overspill.lexical.kinds.log import continues_event
from overspill.lexical.reading import find_filler, strip_colours
from overspill.tables.table import Span
from overspill.text.encoding import decode
from overspill.text.patterns import compile_pattern

LEVEL = re.compile(
    r"\b(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)\b"
    r"|(?:\blevel\"?[=:] ?\"?|[\[<])(trace|debug|info|notice|warn(?:ing)?|error|fatal|critical|crit|alert|emerg)\b"
)
LEVEL_CHARS = 160
"""Of the beginning of an event, where its level is."""
_SEVERE_LINE = compile_pattern(rb"\b(?:ERROR|FATAL|CRITICAL|SEVERE)\b|\blevel\"?[=:] ?\"?(?:error|fatal|crit|alert|emerg)")
SEVERE = ("ERROR", "FATAL", "CRITICAL", "SEVERE", "CRIT", "ALERT", "EMERG")
_STAMP = re.compile(
    r"\d{4}[-/.]\d\d[-/.]\d\d[T _]?\d\d:\d\d(?::\d\d)?|\d\d[-/.]\w{2,3}[-/.]\d{2,4}[: ]\d\d:\d\d:\d\d"
    r"|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d|\b\d\d:\d\d:\d\d\b"
)
_STAMP_CHARS = 100
_MIN_SHARE = 0.5
"""Of the events that have a time, or a level: with fewer, it is not that kind of log."""
_DIGITS = b"0123456789"
_MAX_KINDS = 400
"""Lines that differ in more than digits and are looked at one by one. If there are more, some are drawn."""
_HEADING_BYTES = 60
"""Of a line without its digits: its time, its level and who wrote it."""
_MAX_REPORTS = 16
"""Places where something failed that are read with what is around them."""
_BEFORE_GIVING_UP_BYTES, _AFTER_GIVING_UP_BYTES = 5_000, 1_000
AROUND_BYTES = 500
_END_BYTES = 2_000


class LineGroup(Struct):
    """Lines that differ only in digits; as a kind of message, only in words with digits."""

    first: int
    """The number of the first of them."""
    times: int


class LogLines:
    """The lines of a log. Most differ only in digits from others, so that looking at one of each kind is enough."""

    def __init__(self, data: bytes) -> None:
        self.fill = find_filler(data) if COLOUR_START in data else b""
        self.text = bytes(strip_colours(data, len(data), self.fill)) if self.fill else data
        self._lines = self.text.split(b"\n")
        self._keys = self.text.translate(None, _DIGITS + self.fill).split(b"\n")

    def read(self, number: int) -> str:
        line = self._lines[number][: 4 * MAX_LINE_CHARS]
        return decode(line.replace(self.fill, b"") if self.fill else line).strip("\r")

    def find(self, position: int) -> int:
        """The number of the line at a position."""
        return self.text.count(b"\n", 0, position)

    def __len__(self) -> int:
        return len(self._lines)

    def find_start(self, number: int) -> int:
        return self._sizes[number] + number

    @cached_property
    def _sizes(self) -> Sequence[int]:
        """Of all lines before each, without their ends."""
        return list(accumulate(map(len, self._lines), initial=0))

    @cached_property
    def messages(self) -> tuple[list[LineGroup], int]:
        """The first lines of events, by kind; and from how many lines, or 0 if from all."""
        return self._group(self._keys)

    @cached_property
    def headings(self) -> tuple[list[LineGroup], int]:
        """The same by how lines begin."""
        return self._group([key[:_HEADING_BYTES] for key in self._keys]) if self.messages[1] else self.messages

    def _group(self, keys: list[bytes]) -> tuple[list[LineGroup], int]:
        times = Counter(keys)
        if len(times) > _MAX_KINDS:
            drawn = draw(0, len(keys), _MAX_KINDS)
            return self._keep_events([LineGroup(number, 1) for number in drawn]), len(drawn)
        groups, first = list[LineGroup](), -1
        for key, many in times.items():  # in the order of their first lines
            first = keys.index(key, first + 1)
            groups.append(LineGroup(first, many))
        return self._keep_events(groups), 0

    def _keep_events(self, groups: list[LineGroup]) -> list[LineGroup]:
        """Without blank lines and, if anything is left then, without what continues an event."""
        visible = [group for group in groups if self._lines[group.first].strip()]
        return [group for group in visible if not continues_event(self._lines[group.first])] or visible


class Log:
    def __init__(self, sample: OutputSample) -> None:
        self.sample = sample
        self.lines = LogLines(sample.data)
        groups, drawn = self.lines.headings
        self.beginnings = [(self.lines.read(group.first), group) for group in groups]
        self.where = f" in {drawn:,} lines drawn at random" if drawn else sample.where
        self.reports = list(islice(find_reports(self.lines.text), _MAX_REPORTS))

    @cached_property
    def levels(self) -> Counter[str]:
        levels = Counter[str]()
        for line, group in self.beginnings:
            if level := _find_level(line):
                levels[level] += group.times
        return levels if self._are_most(levels.total()) else Counter()

    def describe(self) -> Iterator[str]:
        if self._are_most(sum(group.times for line, group in self.beginnings if _find_stamp(line))):
            stamps = (_find_stamp(self.lines.read(number)) for number in range(len(self.lines)))
            lasts = (_find_stamp(self.lines.read(number)) for number in reversed(range(len(self.lines))))
            yield f"first time{self.sample.where} {next(filter(None, stamps))}, last {next(filter(None, lasts))}"
        if self.levels:
            yield f"levels{self.where}: " + ", ".join(f"{level} {times:,}" for level, times in self.levels.most_common())

    def find_first_failure(self) -> int:
        """The position of the first event with a severe level, or else of the first error message; -1 if there is neither."""
        severe = [group.first for line, group in self.beginnings if _find_level(line) in SEVERE]
        if self.lines.headings[1]:  # a line that was not drawn may be the first
            severe = [self.lines.find(found.start()) for found in islice(_SEVERE_LINE.finditer(self.lines.text), 1)]
        return self.lines.find_start(min(severe)) if severe else self.reports[0] if self.reports else -1

    def read_failures(self) -> OutputSample:
        """The lines around what failed, and the last ones."""
        text = self.lines.text
        spans: list[Span] = [(max(0, len(text) - _END_BYTES), len(text))]
        if (place := find_giving_up(text)) >= 0:
            spans.append((max(0, place - _BEFORE_GIVING_UP_BYTES), place + _AFTER_GIVING_UP_BYTES))
        for place in self.reports:
            line = text[text.rfind(b"\n", 0, place) + 1 : place + 1]
            if all(text.find(line, *span) < 0 for span in spans):  # the same line again says nothing more
                spans.append((max(0, place - AROUND_BYTES // 2), place + AROUND_BYTES))
        return self.sample.narrow(spans)

    def _are_most(self, times: int) -> bool:
        return times > _MIN_SHARE * sum(group.times for _, group in self.beginnings)


def _find_stamp(line: str) -> str:
    found = _STAMP.search(line, 0, _STAMP_CHARS)
    return found[0] if found else ""


def _find_level(line: str) -> str:
    found = LEVEL.search(line, 0, LEVEL_CHARS)
    return (found[1] or found[2]).upper() if found else ""
