"""Recognises failures in logs: by words, and by their place before the first sign of giving up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from overspill.lexical.scan import search_pieces
from overspill.lexical.weights import WEIGHTS
from overspill.tables.table import Span
from overspill.text.patterns import Pattern, compile_pattern, find_spans
from overspill.text.regex import regex

if TYPE_CHECKING:
    from overspill.lexical.index import Index

_CAUSE_REACH_BYTES = 8_000
"""How far before a sign of giving up to look for its cause."""
_MAX_STRETCH_RECORDS = 300
"""How many records before a sign of giving up to read as one stretch."""
_MAX_SIGNS = 2_000
_MAX_FAILURE_WORDS = 20_000
"""More failure words than this mean that the text is about failures, not that it reports one."""
_MAX_VERDICT_PLACES, _MAX_WORD_PLACES = 8, 16
"""How many places to look at in a large output, besides the first sign of giving up, the first message and the end."""
_MAX_SCANNED_WORDS = 5_000
"""Failure words that are compared to find the rarest of them in a large output."""

_NAME_GOES_ON = (b".", b"-", b"_", b"/")
"""Characters after a word that show that it is part of a longer name, as in error.log."""

_NONE = (
    rb"\b(?:no|without|any|ignor\w+) (?:\w+ )?(?:errors?|failures?|failed|failing|exceptions?|problems?)\b"
    rb"|(?:^|[^\w./-])(?:0|zero) (?:\w+ )?(?:error\(s\)|(?:errors|failures|failed|failing|exceptions|problems)\b)"
    rb"|\b(?:errors?|failures?|failed|fail)(?:[^\w\n]{1,3}0|[\"']?=[\"']?(?:false|none|null|no))\b"
    rb"|\b(?:errors?|failures?|failed|fail)[^\w\n]{1,3}(?:false|none|null|no)[ \t]*(?:[,;.)\]}\"'|<\r\n]|$)"
)
"""Phrases that say nothing failed, such as `error: none`. `error: no space left` begins a message."""
_STRONG_WORDS = (
    rb"\b(?:fatal|panic(?:ked)?|traceback|exceptions?|errors?|assert(?:ion)?(?:s|ed)?|fail(?:s|ed|ure|ures)?|segmentation fault"
    rb"|segfault|core dumped|abort(?:ed|ing)?|crash(?:ed)?|err!|critical|severe|killed|oom)\b"
)
_WEAK_WORDS = (
    rb"\b(?:cannot|can't|could not|couldn't|unable|not found|no such|undefined|missing|denied|refused|time[ds]? ?out|timeout"
    rb"|invalid|unexpected|expected|expecting|mismatch|unresolved|unknown|does not|doesn't|exceed(?:ed|s)?|conflicts?|rejected"
    rb"|unsupported|illegal|not defined|not allowed|no space left|out of memory|giving up|gave up"
    rb"|disconnected|broken|corrupt(?:ed)?|deadlock|unreachable|unauthorized|forbidden)\b"
    rb"|\xe2\x9c\x96|\xe2\x9c\x97|\xe2\x9c\x98|\xc3\x97 "
)
_WORDS = rb"(?i:" + _NONE + rb"|" + _STRONG_WORDS + rb"|" + _WEAK_WORDS + rb")|[a-z](?:Error|Exception|Failure|Failed)\b"
_is_none = regex(b"(?i)" + _NONE)
_is_weak = regex(b"(?i)" + _WEAK_WORDS)
_GAVE_UP = (
    rb"(?i:\bexit(?:ed|s)?(?: with)?(?: (?:code|status))?[:=]? *\(?[1-9][0-9]*\b|\bnon-?zero\b|\*\*\* .{0,120}\bError [1-9][0-9]*"
    rb"|\bbuild fail(?:ed|ure)\b|\bcommand failed\b|\breturned [1-9][0-9]* *$"
    rb"|\b(?:exit |return |status |error )code[:=]? *[1-9][0-9]*\b"
    rb"|\bterminat(?:ed|ing) (?:with|by) signal\b|\bcrashloopbackoff\b|\bjob failed\b|\bscript failed\b)"
)
_MESSAGE = (
    rb"(?m)(?:(?:^|[ :\])])(?i:fatal error|error|fatal)(?:\[\w+\])?: \S|^E  +\S|^\S*(?:Error|Exception): \S|\bpanicked at "
    rb"|^Traceback \(most recent|^Exception in thread|^FAILED: )"
)
"""How programs begin an error message."""
_LEVEL = (
    rb"[\d\])|:] ?[\[(|]?(?:ERROR|FATAL|CRITICAL|SEVERE)\b[\])|:]? +\S"
    rb"|\b(?i:level|severity|levelname|lvl)[\"']?[:=] ?[\"']?(?i:error|err|fatal|critical|severe|panic|alert|emergency)\b"
)
"""The level of an event that reports a failure: after a time or a thread, or as a field."""
_VERDICT = (
    rb"(?m)^\W*(?:FAILED|FAIL|ERROR|not ok|\xe2\x9c\x97|\xe2\x9c\x98|\xe2\x9c\x95|\xe2\x9c\x96)[ :]\s*\S"
    rb"|\S\W+(?:FAILED|FAIL|ERROR|F|E)(?: \*+)?\s*$"
)
"""How test runners mark a failed test."""

_words, _gave_up, _message, _level, _verdict = map(compile_pattern, (_WORDS, _GAVE_UP, _MESSAGE, _LEVEL, _VERDICT))
_report = compile_pattern(b"(?:%b)|(?:%b)|(?:%b)" % (_GAVE_UP, _MESSAGE, _VERDICT))


class Signs(Struct, frozen=True):
    """Where the output reports failures. `before` and `end` list their records backwards."""

    before: list[int]
    """Records up to and including the first sign of giving up, or up to the end of the text."""
    end: list[int]
    verdicts: list[int]
    """Records that report one failure among many results."""
    failing: dict[int, float]
    """Records that certainly report a failure, and how strongly. If no record does, those that may report one."""
    scores: dict[int, float]
    """How much a record looks like the cause, 0…1."""
    evidence: float
    gave_up: bool
    """Whether a program says that it gave up."""


def read_signs(index: Index) -> Signs:
    outline = index.outline
    gave_up = [end for _, end in islice(_search(index, _gave_up), _MAX_SIGNS)]
    marks = (outline.record_at(end - 1) for _, end in islice(_search(index, _verdict), _MAX_SIGNS))
    verdicts = [record for record in dict.fromkeys(marks) if record >= 0]
    last = outline.record_at(gave_up[0] - 1) if gave_up else len(outline) - 1
    own, failing = _score_wording(index)
    top = max(own.values(), default=1.0)
    is_marked = bool(verdicts) and index.traits.is_log
    is_reported = gave_up or is_marked or any(next(_search(index, pattern), None) for pattern in (_message, _level))
    return Signs(
        before=list_backwards(last),
        end=list_backwards(len(outline) - 1),
        verdicts=verdicts,
        failing={record: own[record] for record in failing},
        scores={record: score / top for record, score in own.items()},
        evidence=WEIGHTS.evidence_of_failure if is_reported else 0.0,
        gave_up=bool(gave_up),
    )


def find_sign_places(index: Index) -> list[int]:
    """Where a large output reports failures, likeliest first."""
    source = index.source
    whole = (source, 0, len(source))
    gave_up = next((end for _, end in search_pieces(_gave_up, *whole)), len(source))
    before = [max(0, gave_up - 1 - distance) for distance in range(0, _CAUSE_REACH_BYTES, _CAUSE_REACH_BYTES // 2)]
    messages = [next((start for start, _ in search_pieces(pattern, *whole)), 0) for pattern in (_message, _level)]
    verdicts = [start for start, _ in islice(search_pieces(_verdict, *whole), _MAX_VERDICT_PLACES)]
    spans = islice(search_pieces(_words, *whole), _MAX_SCANNED_WORDS)
    found = [(bytes(source[start:end]).lower(), start) for start, end in spans]
    spread = Counter(word for word, _ in found)
    meant = {word for word in spread if not _is_none.fullmatch(word)}
    telling = {word for word in meant if not _is_weak.fullmatch(word)} or meant
    rarest = nsmallest(_MAX_WORD_PLACES, ((spread[word], place) for word, place in found if word in telling))
    end = [max(0, len(source) - 1 - _CAUSE_REACH_BYTES)]
    return [*before, *messages, *end, *verdicts, *(place for _, place in rarest)]


def _search(index: Index, pattern: Pattern) -> Iterator[Span]:
    return (match for span in index.spans for match in search_pieces(pattern, index.text, *span))


def find_giving_up(data: bytes) -> int:
    """Where the text first says that a program gave up; -1 if it never does."""
    found = next(iter(_gave_up.finditer(data)), None)
    return found.start() if found else -1


def find_reports(data: bytes) -> Iterator[int]:
    """Where a program explicitly says that something failed."""
    return (end - 1 for _, end in find_spans(_report, data, 0, len(data)))


def names_failure(data: bytes) -> bool:
    return _words.search(data) is not None


def list_backwards(last: int) -> list[int]:
    return list(range(last, max(-1, last - _MAX_STRETCH_RECORDS), -1))


def _score_wording(index: Index) -> tuple[dict[int, float], set[int]]:
    """How strongly each record suggests a failure, and which records report one. Frequent words count less.

    Records that may report one count only if no record certainly does.
    """
    outline, text = index.outline, index.text
    found: dict[int, dict[bytes, float]] = {}
    for start, end in islice(_search(index, _words), _MAX_FAILURE_WORDS):
        word = bytes(text[start:end]).lower()
        is_part = text[end : end + 1] in _NAME_GOES_ON and text[end + 1 : end + 2].isalnum()
        if (weight := _weigh_word(word)) and not is_part and (record := outline.record_at(start)) >= 0:
            found.setdefault(record, {})[word] = weight
    spread = Counter(word for words in found.values() for word in words)
    own = {
        record: sum(weight / (1 + math.log10(1 + spread[word] / 10)) for word, weight in words.items())
        for record, words in found.items()
    }
    sure = {record for record, words in found.items() if max(words.values()) >= WEIGHTS.strong_word}
    return own, sure or set(found)


@lru_cache
def _weigh_word(word: bytes) -> float:
    if _is_none.fullmatch(word):
        return 0.0
    return 1.0 if _is_weak.fullmatch(word) else WEIGHTS.strong_word
