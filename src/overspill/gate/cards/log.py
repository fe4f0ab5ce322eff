"""The card of a log: how it ended, what failed, what was said only once or twice, and what was said most often."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, islice

from overspill.gate.cards.card import MAX_LINE_CHARS, Card, Count, Section, indent
from overspill.gate.cards.sample import OutputSample, draw
from overspill.lexical.cutting import COLOUR_START
from overspill.lexical.failures import find_giving_up, find_reports, names_failure
from overspill.lexical.kinds.log import continues_event
from overspill.lexical.reading import find_filler, strip_colours
from overspill.text.encoding import decode
from overspill.text.humanize import count_noun
from overspill.text.patterns import compile_pattern

_LEVEL = re.compile(
    rb"\b(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)\b"
    rb"|(?:\blevel\"?[=:] ?\"?|[\[<])(trace|debug|info|notice|warn(?:ing)?|error|fatal|critical|crit|alert|emerg)\b"
)
_SEVERE = compile_pattern(rb"\b(?:ERROR|FATAL|CRITICAL|SEVERE)\b|\blevel\"?[=:] ?\"?(?:error|fatal|crit|alert|emerg)")
_STAMP = re.compile(
    rb"\d{4}[-/.]\d\d[-/.]\d\d[T _]?\d\d:\d\d(?::\d\d)?|\d\d[-/.]\w{2,3}[-/.]\d{2,4}[: ]\d\d:\d\d:\d\d"
    rb"|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d|\b\d\d:\d\d:\d\d\b"
)
_HEADING = re.compile(rb"\W{0,3}(?:%b)\S{0,12}+(?:.{0,24}?(?:%b))?[\]>|:\s]*+" % (_STAMP.pattern, _LEVEL.pattern))
_HEADING_BYTES = 100
"""Of a line: its time, its level and who wrote it."""
_SUMMARY = compile_pattern(
    rb"(?mi)^.*(?:(?:^|[\s(,=])\d+ (?:tests? |specs? |examples? )?(?:failed|failing|failures?|passed|passing|errors?)\b"
    rb"|\bbuild (?:failed|failure|success(?:ful)?|succeeded)\b|\bFAILED \(|\bexit(?:ed)?(?: with)?(?: code| status)? \d"
    rb"|\breturn code\b.{0,20}\d|\bTests run: ).*$"
)
"""How build tools and test runners sum up."""
_SUMMARY_BYTES = 16 << 10
"""Of the end of a log, where a summary is looked for."""
_MIN_SHARE = 0.5
"""Of the events that have a time, or a level: with fewer, it is not that kind of log."""
_DIGITS = b"0123456789"
_VARIABLE = re.compile(r"\S*\d\S*(?: \S*\d\S*)*")
"""Words with digits, which are others in each message."""
_MAX_KINDS = 200
"""Lines that differ in more than digits and are looked at one by one. If there are more, some are drawn."""
_TIMED_LINES = 40
_MAX_FREQUENT, _MAX_RARE, _RARE_TIMES = 12, 40, 2
_MAX_REPORTS = 12
"""Places where something failed that are shown."""
_LINES_BEFORE, _LINES_AFTER, _LAST_LINES = 40, 6, 3
_LOCATOR_TOKENS = 4


class _Log:
    """Most lines differ only in digits from others, so that looking at one of each kind is enough."""

    def __init__(self, sample: OutputSample) -> None:
        self.sample = sample
        self._fill = find_filler(sample.data) if COLOUR_START in sample.data else b""
        self.text = bytes(strip_colours(sample.data, len(sample.data), self._fill)) if self._fill else sample.data
        self.lines = self.text.split(b"\n")
        self.keys = [line.translate(None, _DIGITS + self._fill) for line in self.lines]

    def read(self, number: int) -> str:
        return decode(self.lines[number][: 4 * MAX_LINE_CHARS].translate(None, self._fill)).strip("\r")

    def find(self, position: int) -> int:
        return self.text.count(b"\n", 0, position)

    def locate(self, number: int) -> str:
        return self.sample.locate(self._sizes[number] + number)

    @cached_property
    def _sizes(self) -> Sequence[int]:
        """Of all lines before each, without their ends."""
        return list(accumulate(map(len, self.lines), initial=0))

    def _group(self, keys: list[bytes]) -> dict[int, int]:
        """The first line with each key, if it begins an event, and how many have it."""
        groups, first = dict[int, int](), -1
        for key, times in Counter(keys).items():  # in the order of their first lines
            first = keys.index(key, first + 1)
            groups[first] = times
        return self._keep_events(groups)

    def _keep_events(self, groups: dict[int, int]) -> dict[int, int]:
        """Without blank lines and, if anything is left then, without what continues an event."""
        visible = {first: times for first, times in groups.items() if self.lines[first].strip()}
        return {first: times for first, times in visible.items() if not continues_event(self.lines[first])} or visible

    @cached_property
    def kinds(self) -> dict[int, int]:
        return self._group(self.keys)

    @cached_property
    def levels(self) -> Counter[str]:
        levels, groups = Counter[str](), self.kinds
        if len(groups) > _MAX_KINDS:
            groups = self._group([key[:_HEADING_BYTES] for key in self.keys])
        for first, times in groups.items():
            if found := _LEVEL.search(self.keys[first], 0, _HEADING_BYTES):
                levels[(found[1] or found[2]).decode().upper()] += times
        return levels if levels.total() > _MIN_SHARE * sum(groups.values()) else Counter()

    def describe(self) -> Iterator[str]:
        events = [number for number in draw(0, len(self.lines), _TIMED_LINES) if not continues_event(self.lines[number])]
        if sum(self._find_stamp(number) != "" for number in events) > _MIN_SHARE * len(events):
            first = next(filter(None, map(self._find_stamp, range(len(self.lines)))))
            last = next(filter(None, map(self._find_stamp, range(len(self.lines) - 1, -1, -1))))
            yield f"first time{self.sample.where} {first}, last {last}"
        if self.levels:
            yield f"levels{self.sample.where}: " + ", ".join(f"{level} {times:,}" for level, times in self.levels.most_common())

    def _find_stamp(self, number: int) -> str:
        found = _STAMP.search(self.lines[number], 0, _HEADING_BYTES)
        return decode(found[0]) if found else ""

    @cached_property
    def summary(self) -> list[str]:
        if not self.sample.has_end:
            return []
        end = len(self.text)
        start = self.text.rfind(b"\n", 0, max(1, end - _SUMMARY_BYTES)) + 1
        found = [match.span() for match in _SUMMARY.finditer(self.text, start, end)][-1:]
        return [decode(self.text[slice(*span)].translate(None, self._fill)).strip() for span in found]

    def show_shapes(self) -> list[Section]:
        """By an example of each, the rarest and then the most frequent."""
        groups, where = self.kinds, self.sample.where
        if len(groups) > _MAX_KINDS:
            drawn = draw(0, len(self.lines), _MAX_KINDS)
            groups, where = self._keep_events(dict.fromkeys(drawn, 1)), f" in {len(drawn):,} lines drawn at random"
        kinds: dict[str, tuple[int, int]] = {}
        for number, times in groups.items():
            key = _VARIABLE.sub("*", self.read(number)[:MAX_LINE_CHARS])
            first, before = kinds.get(key, (number, 0))
            kinds[key] = first, before + times
        shapes = sorted(kinds.values(), key=lambda shape: -shape[1])
        often = [f"{times:,}×{indent(self._cut_heading(first))}" for first, times in shapes if times > _RARE_TIMES]
        rare = [first for first, times in shapes if times <= _RARE_TIMES]
        if often:  # otherwise every line is rare, and their order says more
            rare.sort(key=lambda number: not names_failure(self.lines[number]))
        places = {number: self.locate(number) for number in sorted(rare[:_MAX_RARE])}
        seldom = [f"{places[number]}{indent(self._cut_heading(number))}" for number in rare[:_MAX_RARE]]
        title = f"occurring once or twice{where}" if often else f"lines that differ{where}, from the first on"
        what = f"{count_noun(len(shapes), 'kind')} of line{where}, numbers aside; the most frequent"
        return [
            *([Section(title, seldom, len(rare), 8)] if seldom else ()),
            *([Section(what, often[:_MAX_FREQUENT], len(often), 3)] if often else ()),
        ]

    def _cut_heading(self, number: int) -> str:
        """Without the time and the level before a message."""
        line = self.read(number)
        found = _HEADING.match(line[:_HEADING_BYTES].encode("ascii", "replace"))
        return line[found.end() :] or line if found else line

    def show_failures(self) -> list[Section]:
        """What led to giving up, in a run that did; otherwise the first error."""
        reports = list(dict.fromkeys(map(self.find, islice(find_reports(self.text), _MAX_REPORTS))))
        gave_up = find_giving_up(self.text) if reports else -1
        if gave_up >= 0 or (reports and self.summary):
            last = self.find(gave_up) if gave_up >= 0 else reports[-1]
            before = range(last, max(-1, last - _LINES_BEFORE), -1)
            after = range(reports[0], reports[0] + _LINES_AFTER)
            distinct = {self.keys[number]: number for number in reversed(reports)}.values()
            end = range(len(self.lines) - 1, len(self.lines) - 1 - _LAST_LINES, -1)
            chosen = [*sorted(distinct), *before[:_LINES_AFTER], *after, *end, *before]
            return [Section("what seems to have failed", fit=lambda room, count: self._fit(chosen, room, count))]
        severe = [self.find(found.start()) for found in islice(_SEVERE.finditer(self.text), 1)] if self.levels else []
        around = [number + step for number in (severe or reports)[:1] for step in (0, -1, 1)]
        fit = lambda room, count: self._fit(around, room, count)  # noqa: E731
        return [Section(f"first error{self.sample.where}", fit=fit)] if around else []

    def _fit(self, numbers: Sequence[int], room: int, count: Count) -> list[str]:
        """The most important lines, in the order of the output, each with its place unless it follows another."""
        shown: dict[int, str] = {}
        for number in numbers:
            if number in shown or not 0 <= number < len(self.lines) or not self.lines[number].strip():
                continue
            text = indent(self.read(number))
            cost = count(text) + 1 + (_LOCATOR_TOKENS if number - 1 not in shown else 0)
            if cost > room:
                break
            shown[number], room = text, room - cost
        return [
            text if number - 1 in shown else f"{self.locate(number)}\n{text}" for number, text in sorted(shown.items())
        ]  # a blank line is between lines with something left out between them


def make_log_card(sample: OutputSample) -> Card:
    log = _Log(sample)
    facts, failures = [Section(title) for title in log.describe()], log.show_failures()
    sections = [Section("sums up at the end", [indent(line) for line in log.summary])] if log.summary else []
    sections += [*facts, *failures]
    kind = "log" if sections else "lines of text"
    if not failures or failures[0].title.startswith("first error"):
        sections += log.show_shapes()
    if sample.has_end:
        last = [number for number in range(len(log.lines))[-_LAST_LINES - 1 :] if log.lines[number].strip()][-_LAST_LINES:]
        sections.append(Section("last lines", [indent(log.read(number)) for number in last], first=_LAST_LINES))
    return Card(sections, sample, kind)
