"""The card of a log: its times, levels, failures and end, and its rarest and most frequent messages."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate, islice, takewhile

from overspill.gate.cards.card import MAX_LINE_CHARS, Card, Section, indent
from overspill.gate.cards.sample import OutputSample, draw
from overspill.lexical.cutting import COLOUR_START
from overspill.lexical.failures import find_giving_up, find_reports, names_failure
from overspill.lexical.reading import find_filler, strip_colours
from overspill.tables.events import continues_event
from overspill.text.encoding import decode
from overspill.text.humanize import count_noun
from overspill.text.patterns import compile_pattern
from overspill.text.regex import regex

_LEVEL = regex(
    rb"\b(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)\b"
    rb"|(?:\blevel\"?[=:] ?\"?|[\[<])(trace|debug|info|notice|warn(?:ing)?|error|fatal|critical|crit|alert|emerg)\b"
)
_SEVERE = compile_pattern(rb"\b(?:ERROR|FATAL|CRITICAL|SEVERE)\b|\blevel\"?[=:] ?\"?(?:error|fatal|crit|alert|emerg)")
_STAMP = regex(
    rb"\d{4}[-/.]\d\d[-/.]\d\d[T _]?\d\d:\d\d(?::\d\d)?|\d\d[-/.]\w{2,3}[-/.]\d{2,4}[: ]\d\d:\d\d:\d\d"
    rb"|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d|\b\d\d:\d\d:\d\d\b"
)
_HEADING_BYTES = 100
"""How much of a line may hold its time, its level and its source."""
_MIN_SHARE = 0.5
"""The share of events that must have a time, or a level, to describe them."""
_DIGITS = b"0123456789"
_VARIABLE = regex(r"(?<!\S)[^\s\d]*+\d\S*+(?: [^\s\d]*+\d\S*+)*+")
"""Words with digits, which vary from message to message."""
_MAX_KINDS = 200
"""How many different lines, ignoring digits, to look at one by one. With more, a random sample is drawn."""
_TIMED_LINES = 40
_RARE_TIMES, _MAX_RARE, _MAX_FREQUENT = 2, 40, 12
_MAX_REPORTS, _LINES_BEFORE, _LINES_AFTER = 12, 8, 8
_LAST_LINES = 3


class _Log:
    """Looks at one line of each kind, because most lines differ from others only in digits."""

    def __init__(self, sample: OutputSample) -> None:
        self.sample = sample
        self.shown = set[int]()
        """The numbers of the lines quoted as failures."""
        self._fill = find_filler(sample.data) if COLOUR_START in sample.data else b""
        self.text = bytes(strip_colours(sample.data, len(sample.data), self._fill)) if self._fill else sample.data
        self.lines = self.text.split(b"\n")
        self._keys = self.text.translate(None, _DIGITS + self._fill).split(b"\n")

    def read(self, number: int) -> str:
        return decode(self.lines[number].translate(None, self._fill)).strip("\r")

    def locate(self, number: int) -> str:
        return self.sample.locate(self._start(number))

    def _find(self, position: int) -> int:
        return bisect_right(range(len(self.lines)), position, key=self._start) - 1

    def _start(self, number: int) -> int:
        return self._sizes[number] + number

    @cached_property
    def _sizes(self) -> list[int]:
        """How many bytes, not counting line ends, come before each line."""
        return list(accumulate(map(len, self.lines), initial=0))

    def _keep_events(self, groups: dict[int, int]) -> dict[int, int]:
        """Drops blank lines and lines that continue an event, but keeps the latter if nothing else is left."""
        visible = {first: times for first, times in groups.items() if self.lines[first].strip()}
        return {first: times for first, times in visible.items() if not continues_event(self.lines[first])} or visible

    def _group(self, keys: list[bytes]) -> tuple[dict[int, int], str]:
        """The first line with each key and the number of lines with it. Also says if only some lines were looked at."""
        times, groups, first = Counter(keys), dict[int, int](), -1
        if len(times) > _MAX_KINDS:
            drawn = draw(0, len(keys), _MAX_KINDS)
            return self._keep_events(dict.fromkeys(drawn, 1)), f" in {len(drawn):,} lines drawn at random"
        for key in times:  # in order of first occurrence
            first = keys.index(key, first + 1)
            groups[first] = times[key]
        return self._keep_events(groups), self.sample.where

    @cached_property
    def _kinds(self) -> tuple[dict[int, int], str]:
        return self._group(self._keys)

    @cached_property
    def levels(self) -> str:
        groups, where = (
            self._kinds if len(self._kinds[0]) < _MAX_KINDS else self._group([key[:_HEADING_BYTES] for key in self._keys])
        )
        levels = Counter[str]()
        for first, times in groups.items():
            if found := _LEVEL.search(self._keys[first], 0, _HEADING_BYTES):
                levels[(found[1] or found[2]).decode().upper()] += times
        said = ", ".join(f"{level} {times:,}" for level, times in levels.most_common())
        return f"levels{where}: {said}" if levels.total() > _MIN_SHARE * sum(groups.values()) else ""

    def describe(self) -> Iterator[str]:
        every = range(len(self.lines))
        events = self._keep_events(dict.fromkeys(draw(0, len(self.lines), _TIMED_LINES), 1))
        if sum(map(bool, map(self._find_stamp, events))) > _MIN_SHARE * len(events):
            stamps = [next(found for number in way if (found := self._find_stamp(number))) for way in (every, reversed(every))]
            yield f"first time{self.sample.where} {stamps[0]}, last {stamps[1]}"
        if self.levels:
            yield self.levels

    def _find_stamp(self, number: int) -> str:
        found = _STAMP.search(self.lines[number], 0, _HEADING_BYTES)
        return decode(found[0]) if found else ""

    def show_failures(self) -> Iterator[Section]:
        """What led to giving up, if the run gave up; in other logs, the first error."""
        reports = [self._find(place) for place in islice(find_reports(self.text), _MAX_REPORTS)]
        severe = [self._find(found.start()) for found in islice(_SEVERE.finditer(self.text), 1)] if self.levels else []
        begin = self._start(reports[0]) if reports else len(self.text)
        gave_up = find_giving_up(self.text[begin:])
        if not severe and not reports:
            return
        first, title = (severe or reports)[0], f"first error{self.sample.where}"
        after = range(first + 1, min(first + _LINES_AFTER, len(self.lines)))
        self.shown.update(
            (first - 1, first, *islice(after, 1), *takewhile(lambda number: continues_event(self.lines[number]), after))
        )
        if gave_up >= 0 or not self.levels:
            last, title = self._find(begin + gave_up) if gave_up >= 0 else first, "what seems to have failed"
            self.shown.update({self._keys[number]: number for number in reversed(reports)}.values())
            self.shown.update((first - 2, *after), range(last - _LINES_BEFORE, last + 1))
        self.shown = {number for number in self.shown if number >= 0 and self.lines[number].strip()}
        yield Section(title, items := list(self._quote()), 0, len(items))

    def _quote(self) -> Iterator[str]:
        """Quotes each line with its place, unless it follows the previous one. Shows only the first of adjacent equal lines."""
        for number in sorted(self.shown):
            place = "" if number - 1 in self.shown else f"{self.locate(number)}\n"
            if place or self.lines[number] != self.lines[number - 1]:
                is_repeated = number + 1 in self.shown and self.lines[number] == self.lines[number + 1]
                yield place + indent(self.read(number)) + ("\n(equal lines follow)" if is_repeated else "")

    def show_kinds(self) -> Iterator[Section]:
        """Shows an example of each kind, the rarest and then the most frequent."""
        groups, where = self._kinds
        kinds: dict[str, tuple[int, int]] = {}
        for number, times in groups.items():
            first, before = kinds.get(key := _VARIABLE.sub("*", self.read(number)[:MAX_LINE_CHARS]), (number, 0))
            kinds[key] = first, before + times
        rare = [first for first, times in kinds.values() if times <= _RARE_TIMES and first not in self.shown]
        rare = sorted(rare, key=lambda number: not names_failure(self.lines[number]))[:_MAX_RARE]
        places = {first: self.locate(first) for first in sorted(rare)}
        seldom = [places[first] + indent(self.read(first)) for first in rare]
        most = sorted((shape for shape in kinds.values() if shape[1] > _RARE_TIMES), key=lambda shape: -shape[1])
        often = [f"{times:,}×{indent(self.read(first))}" for first, times in most[:_MAX_FREQUENT]]
        if seldom:
            yield Section(f"occurring once or twice{where}", seldom, 0, 6)
        if often:
            yield Section(f"{count_noun(len(kinds), 'kind')} of line{where}, numbers aside; most frequent", often, len(most), 3)


def make_log_card(sample: OutputSample) -> Card:
    log = _Log(sample)
    sections = [*map(Section, log.describe()), *log.show_failures()]
    kind = "log" if sections else "lines of text"
    last = [
        number for number in range(len(log.lines))[-_LAST_LINES - 1 :] if log.lines[number].strip() and number not in log.shown
    ]
    if sample.has_end and last:
        sections.append(Section("last lines", [indent(log.read(number)) for number in last[-_LAST_LINES:]], 0, _LAST_LINES))
    return Card([*sections, *log.show_kinds()], sample, kind)
