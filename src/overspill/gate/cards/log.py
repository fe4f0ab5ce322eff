"""The card of a log: how it ended, what failed, what was said most often, and what was said only once or twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache

from overspill.gate.cards.card import MAX_LINE_CHARS, Card, Count, Section, indent
from overspill.gate.cards.log_lines import AROUND_BYTES, LEVEL, LEVEL_CHARS, SEVERE, LineGroup, Log, LogLines
from overspill.gate.cards.sample import OutputSample
from overspill.lexical.failures import names_failure
from overspill.lexical.index import Index, build
from overspill.lexical.kinds.kind import Kind
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


def make_log_card(sample: OutputSample, kind: Kind) -> Card:
    log = Log(sample)
    facts = [Section(title, rank=1) for title in log.describe()]
    summary = _find_summary(log.lines) if sample.has_end else []
    ending = [Section("sums up at the end", [indent(line) for line in summary])] if summary else []
    part = log.read_failures() if log.reports else sample.narrow(())
    index = build(part.data, kind=kind)
    if log.reports and (index.signs.gave_up or index.signs.verdicts):

        @cache  # for cards of several sizes
        def quote(record: int) -> str:
            return _quote_event(index, record, summary)

        failures = Section(
            "what seems to have failed", fit=lambda room, count: _show_failures(part, index, quote, room, count), rank=2
        )
        place = index.outline.starts[next(iter(index.signs.before))]
        return Card([*ending, *facts, failures], _suggest(log, part.locate(place)), "log")
    first = log.find_first_failure()
    is_log = bool(facts or summary or first >= 0)
    failed = [Section(f"first error{sample.where}", [_quote_around(sample, first, kind)], rank=2)] if first >= 0 else []
    last = [Section("last lines", lines, rank=5, first=len(lines)) for lines in _list_last_lines(log)]
    sections = [*ending, *facts, *failed, *_show_shapes(log, first, is_log=is_log), *last]
    steps = _suggest(log, sample.locate(first) if first >= 0 else "")
    return Card(
        sections,
        steps if is_log else [NextStep("lines", _FIRST_LINES, "what it lists")],
        "log" if is_log else "lines of text",
    )


def _generalise(word: str) -> str:
    """A word with a digit is another one in each message."""
    return "*" if any(map(str.isdigit, word)) else word


def _find_summary(lines: LogLines) -> list[str]:
    end = len(lines.text)
    start = lines.text.rfind(b"\n", 0, max(1, end - _SUMMARY_BYTES)) + 1
    found = [
        decode((match.group() or b"").translate(None, lines.fill)).strip() for match in _SUMMARY.finditer(lines.text, start, end)
    ]
    return [line for line in found if line][-1:]


def _show_failures(sample: OutputSample, index: Index, quote: Callable[[int], str], room: int, count: Count) -> list[str]:
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
            text = quote(record)
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


def _quote_around(sample: OutputSample, position: int, kind: Kind) -> str:
    """An event with the one before and the one after it."""
    part = sample.narrow(((position - AROUND_BYTES, position + 2 * AROUND_BYTES),))
    index = build(part.data, kind=kind)
    record = index.outline.record_at(max(0, sample.find(position, part)))
    near = range(max(0, record - 1), min(len(index.outline), record + 2))
    return "\n".join(_join_events(part, index, {each: _quote_event(index, each) for each in near}))


def _count_shapes(lines: LogLines) -> list[tuple[str, LineGroup]]:
    """An example of each kind of message; the most frequent first."""
    shapes: dict[str, tuple[str, LineGroup]] = {}
    for group in lines.messages[0]:
        line = lines.read(group.first)
        key = _RUN_OF_VARIABLES.sub("*", " ".join(map(_generalise, line[:MAX_LINE_CHARS].split())))
        _, shape = shapes.setdefault(key, (line, LineGroup(group.first, 0)))
        shape.times += group.times
    return sorted(shapes.values(), key=lambda shape: -shape[1].times)


def _show_shapes(log: Log, first_failure: int, *, is_log: bool) -> list[Section]:
    """By an example of each: in a log, without what precedes its message, such as time, level and the logger's name."""
    lines, drawn = log.lines, log.lines.messages[1]
    shapes, loggers = _count_shapes(lines), _find_loggers(log) if is_log else ()
    where = f" in {drawn:,} lines drawn at random" if drawn else log.sample.where

    def show(line: str) -> str:
        return indent(_strip_heading(line, loggers) if is_log else line)

    frequent = [shape for shape in shapes if shape[1].times > _RARE_TIMES]
    failed = lines.find(first_failure) if first_failure >= 0 else -1
    rare = [(line, group) for line, group in shapes if group.times <= _RARE_TIMES and group.first != failed]
    if frequent:  # otherwise every line is rare, and their order says more
        rare.sort(key=lambda shape: (not names_failure(shape[0].encode("utf-8", "replace")), shape[1].times, len(shape[0]) // 50))
    often = [f"{group.times:,}×{show(line)}" for line, group in frequent[:_MAX_FREQUENT]]
    seldom = [f"{log.sample.locate(lines.find_start(group.first))}{show(line)}" for line, group in rare[:_MAX_RARE]]
    if not often:
        return [Section(f"lines that differ{where}, from the first on", seldom, len(rare), 8, rank=3)] if seldom else []
    what = f"message{where}, each by an example from its first word on" if is_log else f"line{where}, numbers aside"
    return [
        Section(f"{count_noun(len(shapes), 'kind')} of {what}; the most frequent", often, len(frequent), 3, rank=4),
        *([Section(f"occurring once or twice{where}", seldom, len(rare), 8, rank=3)] if seldom else ()),
    ]


def _find_loggers(log: Log) -> Collection[str]:
    """Names with a dot that occur at the beginning of many events."""
    names = Counter[str]()
    for line, group in log.beginnings:
        for word in line[:LEVEL_CHARS].split():
            if "." in word:
                names[word] += group.times
    least = max(_MIN_LOGGER_TIMES, _MIN_LOGGER_SHARE * sum(group.times for _, group in log.beginnings))
    return {word for word, times in names.items() if times >= least}


def _strip_heading(line: str, loggers: Collection[str]) -> str:
    """From the first word on, if there is one."""
    words = line.split(" ")
    for number, word in enumerate(words):
        if _WORD.match(word) and word not in loggers and not LEVEL.match(word):
            return " ".join(words[number:])
    return line


def _list_last_lines(log: Log) -> Iterator[list[str]]:
    if log.sample.has_end:
        start = max(0, len(log.lines.text) - _LAST_LINES * MAX_LINE_CHARS)
        lines = decode(log.lines.text[start:].translate(None, log.lines.fill)).rstrip().split("\n")
        if start and log.lines.text[start - 1 : start] != b"\n":
            lines[0] = ELLIPSIS + lines[0]
        yield [indent(line) for line in lines[-_LAST_LINES:] if line.strip()]


def _suggest(log: Log, place: str) -> list[NextStep]:
    """`place`: of what failed first."""
    text = log.lines.text
    severe = [level if text.find(level.encode()) >= 0 else level.lower() for level in SEVERE if level in log.levels]
    search = NextStep("grep", "|".join(severe) or "(?i)error|fail", "every failure, with its time")
    if not place.startswith("L"):
        return [search]
    line = int(place[1:])
    around = NextStep("lines", f"{max(1, line - _LINES_BEFORE)}-{line + _LINES_AFTER}", "what failed first and why")
    return [around, search]
