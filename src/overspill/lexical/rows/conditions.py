"""Conditions of a question about a list: more than 20, before March, not running."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice, pairwise

from msgspec import Struct

from overspill.lexical.index import Index
from overspill.lexical.rows.cells import COMPARED_ROWS, RowList, fill_row, find_column, read_columns, read_rows, sample_columns
from overspill.lexical.rows.measures import DAYS_OF_MONTH, DAYS_OF_YEAR, Scale, are_measures, find_scale, measure
from overspill.lexical.words import compile_phrases, read_related, stem
from overspill.tables.table import Span
from overspill.text.regex import regex

_MONTH = r"{months}[a-z]{0,6}\.?"
_DATE = rf"\d{{4}}-\d\d(?:-\d\d)?|{_MONTH} (?:\d{{1,2}},? )?\d{{4}}|\d{{1,2}}\.? {_MONTH} \d{{4}}"
_VALUE = rf"(?:[$€£¥] ?)?({_DATE}|-?\d[\d,.]*)"
_COMPARED = rf"\b(?:({{over}})|({{at_least}})|({{under}})|({{at_most}})) (?:the year )?{_VALUE}"
_BETWEEN = rf"\b{{between}} {_VALUE} (?:and|und|et|y) {_VALUE}"
_OR_SIDE = rf"(?<![\d,.]){_VALUE} (?:\w{{1,20}} )?or (?:({{or_more}})|{{or_less}})\b"
_CLAUSE_END = r"[,;?!]|\.\s|\.$|\b{joining}\b"
_NEGATED = r"(?:\b{negation}|n't)[ -](?:\w{1,12} )?\Z"
_EXCLUDED = r"(?:\b{excluding}|n't)[ -](?:yet |in |of |from )?([^\W_]+)"
_UNIT_AFTER = r" ?(?:[KMGTP]i?B|{units}s?)\b"
_YEAR, _ISO_MONTH = regex(r"\d{4}"), regex(r"\d{4}-\d\d")
_WORD = regex(r"[^\W_]+")
_MIN_USUAL_SHARE = 0.1
"""Share of rows that must have a word in a column before a question may want the rows without it."""
_MAX_CELL_CHARS = 100
_MAX_CONDITIONS = 6
_MAX_CLAUSE_CHARS, _MAX_NEGATION_CHARS = 200, 30

Test = Callable[[list[str]], bool]


class _Bounds(Struct, frozen=True):
    """The bounds of a value, and the words of the question around them."""

    low: str
    high: str
    is_open: bool
    """Whether the bound itself is excluded."""
    words: list[str]
    """The words around the bound, the nearest first, up to the end of the clause."""
    joined: list[str]
    """Pairs of adjacent words that may be one name: "home runs" is `homeruns`."""


def find_meeting_rows(index: Index, rows: RowList, question: str) -> list[int]:
    """The rows whose cells meet the conditions of a question. Empty if it has none."""
    names, sample = read_columns(index, rows.table), rows.records[:COMPARED_ROWS]
    columns = index.remember(sample_columns, rows.table, *sample)
    tests = [*_find_comparisons(question, names, columns), *_find_exclusions(question, columns)][:_MAX_CONDITIONS]
    read = read_rows(index, rows.table, rows.records) if tests else ()
    return [record for record, cells in read if all(test(fill_row(cells, len(names))) for test in tests)]


def compares_cells(question: str) -> bool:
    """Whether all rows have to be read to find the ones in question."""
    return bool(_find_bounds(question)) or compile_phrases(_EXCLUDED).search(question) is not None


def blank_comparisons(question: str) -> str:
    """The question without its bounds, because "fewer than 3" does not ask for an order."""
    for pattern in (_BETWEEN, _COMPARED, _OR_SIDE):
        question = compile_phrases(pattern).sub(" ", question)
    return question


def _find_comparisons(question: str, names: list[str], columns: list[list[str]]) -> Iterator[Test]:
    measured = [name if are_measures(cells) else "" for name, cells in zip(names, columns, strict=True)]
    number: int | None = None
    for bounds in _find_bounds(question):
        related = [other for word in bounds.words for other in (word, *read_related().get(stem(word), ()))]
        named = find_column(measured, bounds.joined)
        named = find_column(measured, related) if named is None else named
        number = number if named is None else named  # "over 12 and under 31" names its column once
        if number is not None:
            scale = find_scale(columns[number])
            low, high = _measure_bound(bounds.low, scale), _measure_bound(bounds.high, scale)
            if low or high:
                yield _compare(number, scale, low, high, is_open=bounds.is_open)


def _measure_bound(bound: str, scale: Scale) -> tuple[float, float] | None:
    """Where the value of a bound begins and ends: years, months and days have a duration."""
    value = measure(f"{bound}-01" if _ISO_MONTH.fullmatch(bound) else bound, scale)
    if value is None or scale != "date":
        return None if value is None else (value, math.nextafter(value, math.inf))
    is_month = _ISO_MONTH.fullmatch(bound) or compile_phrases(rf"{_MONTH} \d{{4}}").fullmatch(bound)
    return value, value + (DAYS_OF_YEAR if _YEAR.fullmatch(bound) else DAYS_OF_MONTH if is_month else 1)


def _compare(
    column: int, scale: Scale, low: tuple[float, float] | None, high: tuple[float, float] | None, *, is_open: bool
) -> Test:
    def test(cells: list[str]) -> bool:
        value = measure(cells[column], scale)
        return value is not None and not (low and value < low[is_open]) and not (high and value >= high[not is_open])

    return test


def _find_bounds(question: str) -> list[_Bounds]:
    """The bounds in the order of the question. A comparison with a single value leaves the other side open."""
    found: list[tuple[Span, str, str, bool]] = []
    if not any(map(str.isdecimal, question)):  # as in most questions, and each value has a digit
        return []
    for match in compile_phrases(_BETWEEN).finditer(question):
        if not _is_negated(question, match.start()):
            found.append((match.span(), match[1], match[2], False))
    for match in compile_phrases(_OR_SIDE).finditer(question):
        found.append(((match.start(), match.end(1)), match[1] if match[2] else "", "" if match[2] else match[1], False))
    for match in compile_phrases(_COMPARED).finditer(question):
        is_denied = _is_negated(question, match.start())
        is_low, is_open = bool(match[1] or match[2]) != is_denied, bool(match[1] or match[3]) != is_denied
        found.append((match.span(), match[5] if is_low else "", "" if is_low else match[5], is_open))
    return [_read_bounds(question, *each) for each in sorted(found)[:_MAX_CONDITIONS]]


def _is_negated(question: str, at: int) -> bool:
    return compile_phrases(_NEGATED).search(question[max(0, at - _MAX_NEGATION_CHARS) : at]) is not None


def _read_bounds(question: str, span: Span, low: str, high: str, is_open: bool) -> _Bounds:
    start, end = span
    clause_end = compile_phrases(_CLAUSE_END)
    before = clause_end.split(question[max(0, start - _MAX_CLAUSE_CHARS) : start])[-1]
    following = clause_end.split(question[end : end + _MAX_CLAUSE_CHARS], maxsplit=1)[0]
    near, far = _WORD.findall(following.lower()), _WORD.findall(before.lower())[::-1]
    if unit := compile_phrases(_UNIT_AFTER).match(question, end):
        low, high = (bound and bound + unit[0] for bound in (low, high))
    words = [word for pair in zip([*near, *[""] * len(far)], [*far, *[""] * len(near)], strict=True) for word in pair if word]
    return _Bounds(low, high, is_open, words, [one + other for each in (near, far[::-1]) for one, other in pairwise(each)])


def _find_exclusions(question: str, columns: list[list[str]]) -> Iterator[Test]:
    """ "Not running" asks for rows with another value in a column where many have that word."""
    for found in islice(compile_phrases(_EXCLUDED).finditer(question), _MAX_CONDITIONS):
        word = stem(found[1].lower())
        times = [sum(_stem_first(cell) == word for cell in cells) for cells in columns]
        most = max(times, default=0)
        if most > 1 and most >= _MIN_USUAL_SHARE * len(columns[0]):
            yield _lack(times.index(most), word)


def _stem_first(cell: str) -> str:
    found = _WORD.match(cell[:_MAX_CELL_CHARS])
    return stem(found[0].lower()) if found else ""


def _lack(column: int, word: str) -> Test:
    return lambda cells: _stem_first(cells[column]) not in ("", word)
