"""What failures look like in logs: words, red ink, and that a cause stands shortly before the first sign that something gave up."""

from __future__ import annotations

import math
from collections import Counter

import re2

from overspill.engine.index import Index
from overspill.engine.reading import red_spans

_REACH = 8_000
"""Bytes before a sign of giving up in which its cause is looked for."""
_STRETCH = 300
"""Records before a sign of giving up that may be read as one stretch."""
_MANY = 2_000
_FADE = 1_500.0
_LATER = 0.5
_END = 0.6
_BESIDE = 0.6
_STRONG, _WEAK, _RED = 2.0, 1.0, 1.5

_WORDS = (
    rb"((?i:\b(?:0|no|zero|without|any|ignor\w+) (?:\w+ )?(?:errors?|failures?|failed|failing|exceptions?|problems?)\b"
    rb"|\b(?:errors?|failures?|failed|fail)\W{1,3}(?:0|false|none|null|no)\b))"
    rb"|((?i:\b(?:fatal|panic(?:ked)?|traceback|exceptions?|errors?|assert(?:ion)?(?:s|ed)?|fail(?:s|ed|ure|ures)?|segmentation fault"
    rb"|segfault|core dumped|abort(?:ed|ing)?|crash(?:ed)?|err!|critical|severe|killed|oom)\b)|[a-z](?:Error|Exception|Failure|Failed)\b)"
    rb"|((?i:\b(?:cannot|can't|could not|couldn't|unable|not found|no such|undefined|missing|denied|refused|time[ds]? ?out|timeout|invalid"
    rb"|unexpected|expected|expecting|mismatch|unresolved|unknown|does not|doesn't|exceed(?:ed|s)?|conflicts?|rejected|unsupported|illegal"
    rb"|not defined|not allowed|disconnected|broken|corrupt(?:ed)?|deadlock|unreachable|unauthorized|forbidden)\b)"
    rb"|\xe2\x9c\x96|\xe2\x9c\x97|\xe2\x9c\x98|\xc3\x97 )"
)
_GAVE_UP = (
    rb"(?i:\bexit(?:ed|s)?(?: with)?(?: (?:code|status))?[:=]? *\(?[1-9][0-9]*\b|\bnon-?zero\b|\*\*\* .{0,120}\bError [1-9][0-9]*"
    rb"|\bbuild fail(?:ed|ure)\b|\bcommand failed\b|\breturned [1-9][0-9]* *$|\b(?:exit |return |status |error )code[:=]? *[1-9][0-9]*\b"
    rb"|\bterminat(?:ed|ing) (?:with|by) signal\b|\bcrashloopbackoff\b|\bjob failed\b|\bscript failed\b)"
)
_MESSAGE = (
    rb"(?m)(?:(?:^|[ :\])])(?i:fatal error|error|fatal)(?:\[\w+\])?: \S|^E  +\S|^\S*(?:Error|Exception): \S|\bpanicked at |^Traceback \(most recent"
    rb"|^Exception in thread|^FAILED: )"
)
"""How programs begin to say what went wrong."""
_VERDICT = rb"(?m)^\W*(?:FAILED|FAIL|ERROR|not ok|\xe2\x9c\x97|\xe2\x9c\x98|\xe2\x9c\x95|\xe2\x9c\x96)[ :]\s*\S|\S\W+(?:FAILED|FAIL|ERROR|F|E)(?: \*+)?\s*$"
"""How test runners mark the one among many that failed."""


def _compile(pattern: bytes) -> re2._Regexp[bytes]:
    options = re2.Options()
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern, options)


_words = _compile(_WORDS)
_gave_up = _compile(_GAVE_UP)
_message = _compile(_MESSAGE)
_verdict = _compile(_VERDICT)


def stretches(index: Index) -> tuple[list[int], list[int]]:
    """The records that end with the first sign of giving up, and those that end the text, nearest first."""
    total = len(index.outline)
    first = next(iter(_gave_up.finditer(index.text, 0, index.searched_bytes)), None)
    last = index.outline.record_at(first.end() - 1) if first else total - 1
    return list(range(last, max(-1, last - _STRETCH), -1)), list(range(total - 1, max(-1, total - 1 - _STRETCH), -1))


def first_message(index: Index) -> list[int]:
    """The record in which something is first said to have gone wrong, with the one after it."""
    first = next(iter(_message.finditer(index.text, 0, index.searched_bytes)), None)
    record = index.outline.record_at(first.end() - 1) if first else -1
    return [record] if record >= 0 else []


def verdicts(index: Index) -> list[int]:
    """The records that say of one thing among many that it failed."""
    found = (index.outline.record_at(match.end() - 1) for match in _verdict.finditer(index.text, 0, index.searched_bytes))
    return [record for record in dict.fromkeys(found) if record >= 0][:_MANY]


def failure_scores(index: Index) -> dict[int, float]:
    """How much each record looks like the cause of a failure, 0…1; records that do not look like it are left out."""
    own = _wording(index)
    near = _nearness(index)
    scores = {record: own.get(record, 0.0) * (0.4 + near.get(record, 0.0)) + near.get(record, 0.0) for record in {*own, *near}}
    scores = _with_surroundings(scores, len(index.outline))
    top = max(scores.values(), default=1.0)
    return {record: score / top for record, score in scores.items()}


def _wording(index: Index) -> dict[int, float]:
    """How strongly a record speaks of failure; a word the log is full of says less."""
    outline, text = index.outline, index.text
    found: dict[int, dict[bytes, float]] = {}
    for match in _words.finditer(text, 0, index.searched_bytes):
        if match.group(1) is None and (record := outline.record_at(match.start())) >= 0:
            weight = _STRONG if match.group(2) is not None else _WEAK
            if text[match.end() : match.end() + 1] in (b".", b"-", b"_", b"/"):
                weight *= 0.4
            found.setdefault(record, {})[match.group().lower()] = weight
    spread = Counter(word for words in found.values() for word in words)
    own = {
        record: min(3.0, sum(weight / (1 + math.log10(1 + spread[word] / 10)) for word, weight in words.items()))
        for record, words in found.items()
    }
    for position in red_spans(index.source, 0, index.searched_bytes):
        if (record := outline.record_at(position)) >= 0:
            own[record] = max(own.get(record, 0.0) + _RED / 2, _RED)
    return own


def _nearness(index: Index) -> dict[int, float]:
    """How close before a sign of giving up a record stands; the first sign counts most, the end of the text is one too."""
    outline = index.outline
    signs = [match.end() for match in _gave_up.finditer(index.text, 0, index.searched_bytes)]
    weights = {position: 1.0 if number == 0 else _LATER for number, position in enumerate(signs[:50])}
    weights.setdefault(index.searched_bytes, _END if signs else 1.0)
    near: dict[int, float] = {}
    for position, weight in weights.items():
        record = outline.record_at(position - 1)
        if record < 0:
            record = len(outline) - 1
        while record >= 0 and (distance := position - outline.ends[record]) < _REACH:
            near[record] = max(near.get(record, 0.0), weight * math.exp(-max(0, distance) / _FADE))
            record -= 1
    return near


def _with_surroundings(scores: dict[int, float], total: int) -> dict[int, float]:
    """A message goes on in the lines after it and is announced in those before it."""
    spread = dict(scores)
    for record, score in scores.items():
        for step, share in ((1, _BESIDE), (2, _BESIDE**2), (3, _BESIDE**3), (-1, _BESIDE), (-2, _BESIDE**2)):
            if 0 <= record + step < total and spread.get(record + step, 0.0) < share * score:
                spread[record + step] = share * score
    return spread
