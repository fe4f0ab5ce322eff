"""The card of a log: how it ended, what failed, what was said most often, and what was said only once or twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import Struct

from overspill.gate.cards.card import MAX_LINE_CHARS, Card, Count, Section, indent
from overspill.gate.cards.sample import OutputSample, draw
from overspill.lexical.index import Index
from overspill.lexical.render import render
from overspill.text.encoding import decode
from overspill.text.humanize import ELLIPSIS, count_noun
from overspill.text.patterns import compile_pattern
from overspill.wording.cards import NextStep

_SUMMARY = compile_pattern(
    rb"(?mi)^.*(?:(?:^|[\s(,=])\d+ (?:tests? |specs? |examples? )?(?:failed|failing|failures?|passed|passing|errors?)\b"
    rb"|\bbuild (?:failed|failure|success(?:ful)?|succeeded)\b|\bFAILED \(|\bexit(?:ed)?(?: with)?(?: code| status)? \d"
    rb"|\breturn code\b.{0,20}\d|\bTests run: ).*$"
)
"""How build tools and test runners sum up."""
_SUMMARY_BYTES = 16 << 10
"""Of the end of a log, where a summary is looked for."""
_LEVEL = re.compile(
    r"\b(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)\b"
    r"|(?:\blevel\"?[=:] ?\"?|[\[<])(trace|debug|info|notice|warn(?:ing)?|error|fatal|critical|crit|alert|emerg)\b"
)
_LEVEL_CHARS = 160
"""Of the beginning of an event, where its level is."""
_SEVERE = ("ERROR", "FATAL", "CRITICAL", "SEVERE", "CRIT", "ALERT", "EMERG")
_STAMP = re.compile(
    r"\d{4}[-/.]\d\d[-/.]\d\d[T _]?\d\d:\d\d(?::\d\d)?|\d\d[-/.]\w{2,3}[-/.]\d{2,4}[: ]\d\d:\d\d:\d\d"
    r"|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d|\b\d\d:\d\d:\d\d\b"
)
_STAMP_CHARS = 100
_MIN_SHARE = 0.5
"""Of the events that have a time, or a level: with fewer, it is not that kind of log."""
_TRIED_EVENTS = 200
_RUN_OF_VARIABLES = re.compile(r"\*(?: \*)+")
_WORD = re.compile(r"[\"'(]*+[A-Za-z][a-z][a-zA-Z.:=/_-]*+[\"'),;!?]*+$")
_MIN_LOGGER_TIMES, _MIN_LOGGER_SHARE = 5, 0.01
_MAX_FREQUENT, _MAX_RARE = 12, 40
_RARE_TIMES = 2
"""A message that occurs more often is not among the rarest."""
_VERDICTS_SHARE, _STRETCH_SHARE, _END_SHARE = 0.6, 0.65, 0.5
"""Of the room that is left, for failed tests, for what precedes giving up, and for the end."""
_MAX_VERDICTS = 12
"""With more failed tests, why it failed says more than which."""
_LOCATOR_TOKENS = 4
_REPEATED = "(equal lines follow)"
_MAX_EVENT_LINES = 12
_MAX_MISSES = 30
"""Events that may be too long before the search for shorter ones ends."""
_LAST_LINES = 3
_FIRST_LINES = "1-100"
_LINES_BEFORE, _LINES_AFTER = 30, 10
"""Around a failure, for the next call."""


class _Shape(Struct):
    """Messages that differ only in words with digits."""

    times: int
    example: str
    record: int
    is_failure: bool


def make_log_card(sample: OutputSample, index: Index) -> Card:
    signs, events = index.signs, _read_events(index)
    levels = _count_levels(events)
    facts = [Section(title, rank=1) for title in _describe_times_and_levels(sample, events, levels)]
    summary = _find_summary(index) if sample.has_end else []
    ending = [Section("sums up at the end", [indent(line) for line in summary])] if summary else []
    if signs.gave_up or signs.verdicts:
        failures = Section(
            "what seems to have failed", fit=lambda room, count: _show_failures(sample, index, summary, room, count), rank=2
        )
        return Card([*ending, *facts, failures], _suggest(sample, index, next(iter(signs.before), -1), levels), "log")
    first = _find_first_failure(index, events)
    is_log = bool(facts or summary or first >= 0)
    failed = [
        Section(f"first error{sample.where}", ["\n".join(_join_events(sample, index, _quote_around(index, first)))], rank=2)
    ]
    shapes = _show_shapes(sample, index, _count_shapes(index, events), _find_loggers(events) if is_log else None, first)
    last = [Section("last lines", lines, rank=5, first=len(lines)) for lines in _list_last_lines(sample, index)]
    sections = [*ending, *facts, *(failed if first >= 0 else ()), *shapes, *last]
    steps = _suggest(sample, index, first, levels) if is_log else [NextStep("lines", _FIRST_LINES, "what it lists")]
    return Card(sections, steps, "log" if is_log else "lines of text")


def _read_events(index: Index) -> list[str]:
    """The first line of each event; empty for what continues a line that is longer than an event may be."""
    text, fill = index.text, index.fill
    events: list[str] = []
    for start, end in zip(index.outline.starts, index.outline.ends, strict=True):
        if start and text[start - 1 : start] != b"\n":
            events.append("")
            continue
        most = min(end, start + 4 * MAX_LINE_CHARS)
        stop = text.find(b"\n", start, most)
        line = bytes(text[start : stop if stop >= 0 else most])
        events.append(decode(line.replace(fill, b"") if fill else line).strip("\r"))
    return events


def _count_levels(events: list[str]) -> Counter[str]:
    if not _have_most(events, _find_level):
        return Counter()
    return Counter(level for line in events if (level := _find_level(line)))


def _describe_times_and_levels(sample: OutputSample, events: list[str], levels: Counter[str]) -> Iterator[str]:
    if _have_most(events, _find_stamp):
        stamps = [stamp for line in events if (stamp := _find_stamp(line))]
        yield f"first time{sample.where} {stamps[0]}, last {stamps[-1]}"
    if levels:
        yield f"levels{sample.where}: " + ", ".join(f"{level} {times:,}" for level, times in levels.most_common())


def _have_most(events: list[str], find: Callable[[str], str]) -> bool:
    """By some of them."""
    tried = [events[number] for number in draw(0, len(events), _TRIED_EVENTS)]
    return bool(tried) and sum(bool(find(line)) for line in tried) > _MIN_SHARE * len(tried)


def _find_stamp(line: str) -> str:
    found = _STAMP.search(line, 0, _STAMP_CHARS)
    return found[0] if found else ""


def _generalise(word: str) -> str:
    """A word with a digit is another one in each message."""
    return "*" if any(map(str.isdigit, word)) else word


def _find_level(line: str) -> str:
    found = _LEVEL.search(line, 0, _LEVEL_CHARS)
    return (found[1] or found[2]).upper() if found else ""


def _find_summary(index: Index) -> list[str]:
    end = index.total_bytes
    start = index.text.rfind(b"\n", 0, max(1, end - _SUMMARY_BYTES)) + 1
    found = [render(index, *match.span()).strip() for match in _SUMMARY.finditer(index.text, start, end)]
    return [line for line in found if line][-1:]


def _show_failures(sample: OutputSample, index: Index, told: Collection[str], room: int, count: Count) -> list[str]:
    """In the order of the output: the failed tests, what precedes the first sign of giving up, the first message, the end, and
    then whatever looks most like a cause."""
    signs, shown, left, misses = index.signs, dict[int, str](), float(room), _MAX_MISSES
    likely = sorted(signs.scores, key=lambda record: -signs.scores[record])
    verdicts = signs.verdicts if len(signs.verdicts) <= _MAX_VERDICTS else []
    steps: tuple[tuple[Sequence[int], float], ...] = (
        (verdicts, _VERDICTS_SHARE),
        (signs.before, _STRETCH_SHARE),
        (signs.first_message, 1.0),
        (signs.end, _END_SHARE),
        (likely, 1.0),
    )
    for records, share in steps:
        least = left - share * left
        for record in records:
            if record in shown:
                continue
            text = _quote_event(index, record, told)
            if text and any(near in shown and _are_equal(index, near, record) for near in (record - 1, record + 1)):
                shown[record] = text
                continue
            cost = count(text) + 1 + (_LOCATOR_TOKENS if record - 1 not in shown else 0)
            if left - cost >= least:
                shown[record], left = text, left - cost
            elif records is not likely or not (misses := misses - 1):
                break
    return _join_events(sample, index, shown)


def _quote_event(index: Index, record: int, told: Collection[str] = ()) -> str:
    """Without lines that the card has told already."""
    lines = render(index, index.outline.starts[record], index.outline.ends[record]).split("\n")
    more = [f"({len(lines) - _MAX_EVENT_LINES:,} more lines)"] if len(lines) > _MAX_EVENT_LINES else []
    return "\n".join([indent("\n".join(line for line in lines[:_MAX_EVENT_LINES] if line.strip() not in told)), *more])


def _join_events(sample: OutputSample, index: Index, shown: dict[int, str]) -> list[str]:
    """Each with its place, unless it follows the one before. Of equal ones that follow each other, the first."""
    joined: list[str] = []
    for record, text in sorted(shown.items()):
        if not text:
            continue
        starts = index.outline.starts
        follows = record - 1 in shown and sample.are_adjacent(starts[record - 1], starts[record])
        if follows and _are_equal(index, record - 1, record):
            if not joined[-1].endswith(_REPEATED):
                joined[-1] += f"\n{_REPEATED}"
        else:
            joined.append(text if follows else f"{sample.locate(starts[record])}\n{text}")
    return joined


def _are_equal(index: Index, one: int, other: int) -> bool:
    """Also in what is not shown of them."""
    first, second = (bytes(index.text[index.outline.starts[each] : index.outline.ends[each]]).strip() for each in (one, other))
    return first == second


def _find_first_failure(index: Index, events: list[str]) -> int:
    """The first event with a severe level, or else the first error message; -1 if there is neither."""
    severe = (record for record, line in enumerate(events) if _find_level(line) in _SEVERE)
    return next(severe, next(iter(index.signs.first_message), -1))


def _quote_around(index: Index, record: int) -> dict[int, str]:
    near = range(max(0, record - 1), min(len(index.outline), record + 2)) if record >= 0 else ()
    return {each: _quote_event(index, each) for each in near}


def _count_shapes(index: Index, events: list[str]) -> list[_Shape]:
    """The most frequent first."""
    shapes: dict[str, _Shape] = {}
    failing = index.signs.failing
    for record, line in enumerate(events):
        if not line:
            continue
        key = _RUN_OF_VARIABLES.sub("*", " ".join(map(_generalise, line[:MAX_LINE_CHARS].split())))
        if (shape := shapes.get(key)) is not None:
            shape.times += 1
        else:
            shapes[key] = _Shape(1, line, record, record in failing)
    return sorted(shapes.values(), key=lambda shape: -shape.times)


def _show_shapes(
    sample: OutputSample, index: Index, shapes: list[_Shape], loggers: Collection[str] | None, first_failure: int
) -> list[Section]:
    """By an example of each: in a log, without what precedes its message, such as time, level and the logger's name."""

    def show(shape: _Shape) -> str:
        return indent(shape.example if loggers is None else _strip_heading(shape.example, loggers))

    frequent = [shape for shape in shapes if shape.times > _RARE_TIMES]
    rare = [shape for shape in shapes if shape.times <= _RARE_TIMES and shape.record != first_failure]
    if frequent:  # otherwise every line is rare, and their order says more
        rare.sort(key=lambda shape: (not shape.is_failure, shape.times, len(shape.example) // 50))
    often = [f"{shape.times:,}×{show(shape)}" for shape in frequent[:_MAX_FREQUENT]]
    seldom = [f"{sample.locate(index.outline.starts[shape.record])}{show(shape)}" for shape in rare[:_MAX_RARE]]
    if not often:
        return [Section("lines that differ, from the first on", seldom, len(rare), 8, rank=3)] if seldom else []
    what = f"line{sample.where}, numbers aside"
    if loggers is not None:
        what = f"message{sample.where}, each by an example from its first word on"
    return [
        Section(f"{count_noun(len(shapes), 'kind')} of {what}; the most frequent", often, len(frequent), 3, rank=4),
        *([Section(f"occurring once or twice{sample.where}", seldom, len(rare), 8, rank=3)] if seldom else ()),
    ]


def _find_loggers(events: list[str]) -> Collection[str]:
    """Names with a dot that occur at the beginning of many events."""
    names = Counter(word for line in events for word in line[:_LEVEL_CHARS].split() if "." in word)
    return {word for word, times in names.items() if times >= max(_MIN_LOGGER_TIMES, _MIN_LOGGER_SHARE * len(events))}


def _strip_heading(line: str, loggers: Collection[str]) -> str:
    """From the first word on, if there is one."""
    words = line.split(" ")
    for number, word in enumerate(words):
        if _WORD.match(word) and word not in loggers and not _LEVEL.match(word):
            return " ".join(words[number:])
    return line


def _list_last_lines(sample: OutputSample, index: Index) -> Iterator[list[str]]:
    if sample.has_end:
        end = index.total_bytes
        start = max(0, end - _LAST_LINES * MAX_LINE_CHARS)
        lines = render(index, start, end).rstrip().split("\n")
        if start and index.text[start - 1 : start] != b"\n":
            lines[0] = ELLIPSIS + lines[0]
        yield [indent(line) for line in lines[-_LAST_LINES:] if line.strip()]


def _suggest(sample: OutputSample, index: Index, failed: int, levels: Counter[str]) -> list[NextStep]:
    """`failed`: an event, or -1."""
    severe = [level if index.text.find(level.encode()) >= 0 else level.lower() for level in _SEVERE if level in levels]
    search = NextStep("grep", "|".join(severe) or "(?i)error|fail", "every failure, with its time")
    place = sample.locate(index.outline.starts[failed]) if failed >= 0 else ""
    if not place.startswith("L"):
        return [search]
    line = int(place[1:])
    around = NextStep("lines", f"{max(1, line - _LINES_BEFORE)}-{line + _LINES_AFTER}", "what failed first and why")
    return [around, search]
