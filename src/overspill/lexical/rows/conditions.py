"""Conditions of a question about a list: more than 20, before March, archived, without a licence, of the type "lamp"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice, pairwise

from msgspec import Struct

from overspill.lexical.index import Index
from overspill.lexical.rows.cells import find_column, read_columns, read_rows
from overspill.lexical.rows.measures import DAYS_OF_MONTH, DAYS_OF_YEAR, Scale, are_measures, find_scale, measure
from overspill.lexical.rows.siblings import RowList, find_list
from overspill.lexical.words import read_related, split_subwords, stem

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DATE = rf"\d{{4}}-\d\d(?:-\d\d)?|{_MONTH} (?:\d{{1,2}},? )?\d{{4}}|\d{{1,2}}\.? {_MONTH} \d{{4}}"
_VALUE = rf"(?:[$€£¥] ?)?({_DATE}|-?\d[\d,.]*)"
_OVER = (
    "more than|greater than|higher than|larger than|longer than|over|above|exceed(?:s|ing)?|after|later than|newer than"
    "|mehr als|über|plus de|más de"
)
_LEAST = "at least|no less than|not less than|a minimum of|since|mindestens|au moins|al menos"
_UNDER = (
    "less than|fewer than|lower than|smaller than|shorter than|cheaper than|below|under|before|earlier than|older than"
    "|weniger als|unter|moins de|menos de"
)
_MOST = "at most|no more than|not more than|up to|a maximum of|until|höchstens|au plus|como máximo"
_COMPARED = re.compile(rf"\b(?:({_OVER})|({_LEAST})|({_UNDER})|({_MOST})) (?:the year )?{_VALUE}", re.IGNORECASE)
_BETWEEN = re.compile(rf"\b(?:between|zwischen|entre) {_VALUE} (?:and|und|et|y) {_VALUE}", re.IGNORECASE)
_OR_SIDE = re.compile(
    rf"(?<![\d,.]){_VALUE} (?:\w{{1,20}} )?or "
    r"(?:(more|higher|later|newer|over|longer)|(?:less|fewer|lower|earlier|older|under|shorter))\b",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[,;?!]|\.\s|\.$|\b(?:and|or|but|und|oder|et|ou|y|o)\b", re.IGNORECASE)
_ABSENT = re.compile(r"\b(?:without|no|missing|lacks?|lacking|ohne|sans|sin) (?:an? |any |the )?([^\W\d_]{2,40})", re.IGNORECASE)
_NEGATED = re.compile(r"(?:\bnot|n't|\bnon|\bno longer|\bwithout|\bnever|\bno)\b[ -](?:\w{1,12} )?$", re.IGNORECASE)
_DENIED = re.compile(r"(?:\b(?:not|no|never)|n't) \Z", re.IGNORECASE)
_UNIT_AFTER = re.compile(r" ?(?:[KMGTP]i?B|(?:millisecond|second|minute|hour|day|week|month|year)s?)\b", re.IGNORECASE)
_YEAR, _ISO_MONTH = re.compile(r"\d{4}"), re.compile(r"\d{4}-\d\d")
_NAMED_MONTH = re.compile(rf"{_MONTH} \d{{4}}", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_YES, _NO = frozenset({"true", "yes", "y", "t", "1"}), frozenset({"false", "no", "n", "f", "0"})
_NOTHING = ("", "None", "[]", "{}")
_FLAG_WORDS = ("is", "has", "flag", "can")
_SAMPLED_ROWS = 200
_MAX_CONDITIONS = 6
_MAX_CLAUSE_CHARS, _MAX_NEGATION_CHARS = 200, 30

Test = Callable[[list[str]], bool]


class _Bounds(Struct, frozen=True):
    """Between which values something has to be, and what the question says around them."""

    low: str
    high: str
    is_open: bool
    """Whether the bound itself is outside."""
    words: list[str]
    joined: list[str]
    """Two words next to each other that may be one name: "home runs" is `homeruns`."""


class Column(Struct, frozen=True):
    name: str
    cells: list[str]
    """Of a sample of rows."""

    @property
    def is_flag(self) -> bool:
        filled = {cell.lower() for cell in self.cells if cell not in _NOTHING}
        return len(filled) == 2 and bool(filled & _YES) and bool(filled & _NO)


def find_meeting_rows(index: Index, rows: RowList, question: str) -> list[int]:
    """Those that meet what a question asks of their cells besides its words; none if it asks nothing like that."""
    columns = index.remember(_read_sample, rows.records[0])
    found = (*_find_comparisons(question, columns), *_find_flags(question, columns), *_find_gaps(question, columns))
    tests = found[:_MAX_CONDITIONS]
    read = read_rows(index, rows.table, rows.records) if tests else ()
    return [record for record, cells in read if all(test(_fill(cells, len(columns))) for test in tests)]


def list_bounds(question: str) -> frozenset[str]:
    """The keys of the terms that only say between what something has to be."""
    bounds = [bound for found in islice(_find_bounds(question), _MAX_CONDITIONS) for bound in (found.low, found.high)]
    return frozenset(part.lower() for bound in bounds for part in (bound, *_WORD.findall(bound)))


def blank_comparisons(question: str) -> str:
    """The question without its bounds: "fewer than 3" asks for no order."""
    for pattern in (_BETWEEN, _COMPARED, _OR_SIDE):
        question = pattern.sub(" ", question)
    return question


def _read_sample(index: Index, record: int) -> list[Column]:
    """Of the list that a record is in."""
    if not (rows := find_list(index, record)):
        return []
    names = read_columns(index, rows.table)
    sample = [_fill(cells, len(names)) for _, cells in read_rows(index, rows.table, rows.records[:_SAMPLED_ROWS])]
    return [Column(name, [cells[number] for cells in sample]) for number, name in enumerate(names)]


def _fill(cells: list[str], columns: int) -> list[str]:
    """Rows may be shorter than their header."""
    return cells if len(cells) >= columns else cells + [""] * (columns - len(cells))


def _find_comparisons(question: str, columns: list[Column]) -> Iterator[Test]:
    measured = [column.name if not column.is_flag and are_measures(column.cells) else "" for column in columns]
    number: int | None = None
    for bounds in islice(_find_bounds(question), _MAX_CONDITIONS):
        related = [other for word in bounds.words for other in (word, *read_related().get(stem(word), ()))]
        named = find_column(measured, bounds.joined)
        named = find_column(measured, related) if named is None else named
        number = number if named is None else named  # "over 12 and under 31" names its column once
        if number is not None:
            scale = find_scale(columns[number].cells)
            low, high = _measure_bound(bounds.low, scale), _measure_bound(bounds.high, scale)
            if low is not None or high is not None:
                yield _compare(number, scale, low, high, is_open=bounds.is_open)


def _measure_bound(bound: str, scale: Scale) -> tuple[float, float] | None:
    """The bound and where what it says ends: a year, a month and a day have both."""
    is_month = bool(_ISO_MONTH.fullmatch(bound) or _NAMED_MONTH.fullmatch(bound))
    value = measure(f"{bound}-01" if _ISO_MONTH.fullmatch(bound) else bound, scale)
    if value is None or scale != "date":
        return None if value is None else (value, value)
    return value, value + (DAYS_OF_YEAR if _YEAR.fullmatch(bound) else DAYS_OF_MONTH if is_month else 1)


def _compare(
    column: int, scale: Scale, low: tuple[float, float] | None, high: tuple[float, float] | None, *, is_open: bool
) -> Test:
    """A date is after another from the end of that on, and until it up to there."""

    def test(cells: list[str]) -> bool:
        value = measure(cells[column], scale)
        if value is None:
            return False
        if scale == "date":
            return (low is None or value >= low[is_open]) and (high is None or value < high[not is_open])
        if is_open:
            return (low is None or value > low[0]) and (high is None or value < high[0])
        return (low is None or value >= low[0]) and (high is None or value <= high[0])

    return test


def _find_bounds(question: str) -> Iterator[_Bounds]:
    """In the order of the question. What is not between two values may be anywhere."""
    found = [
        (match, pattern)
        for pattern in (_BETWEEN, _COMPARED, _OR_SIDE)
        for match in pattern.finditer(question)
        if pattern is not _BETWEEN or not _is_denied(question, match)
    ]
    for match, pattern in sorted(found, key=lambda pair: pair[0].start()):
        if pattern is _BETWEEN:
            yield _bound(question, match.span(), match[1], match[2])
        elif pattern is _OR_SIDE:
            yield _bound(question, (match.start(), match.end(1)), *_put(match[1], is_low=bool(match[2])))
        else:
            is_denied = _is_denied(question, match)
            is_low, is_open = bool(match[1] or match[2]) != is_denied, bool(match[1] or match[3]) != is_denied
            yield _bound(question, match.span(), *_put(match[5], is_low=is_low), is_open=is_open)


def _is_denied(question: str, found: re.Match[str]) -> bool:
    return bool(_DENIED.search(question, max(0, found.start() - _MAX_NEGATION_CHARS), found.start()))


def _put(bound: str, *, is_low: bool) -> tuple[str, str]:
    return (bound, "") if is_low else ("", bound)


def _bound(question: str, span: tuple[int, int], low: str, high: str, *, is_open: bool = False) -> _Bounds:
    """With the words around the bound, the nearest first, up to the end of the clause."""
    start, end = span
    before = _CLAUSE_END.split(question[max(0, start - _MAX_CLAUSE_CHARS) : start])[-1]
    following = _CLAUSE_END.split(question[end : end + _MAX_CLAUSE_CHARS], maxsplit=1)[0]
    near, far = _WORD.findall(following.lower()), _WORD.findall(before.lower())[::-1]
    if unit := _UNIT_AFTER.match(question, end):
        low, high = (bound and bound + unit[0] for bound in (low, high))
    words = [word for pair in zip([*near, *[""] * len(far)], [*far, *[""] * len(near)], strict=True) for word in pair if word]
    return _Bounds(low, high, is_open, words, [one + other for each in (near, far[::-1]) for one, other in pairwise(each)])


def _find_flags(question: str, columns: list[Column]) -> Iterator[Test]:
    """ "Archived" asks for rows whose `archived` is true, "not archived" for the others."""
    words = [(stem(found[0].lower()), found.start()) for found in _WORD.finditer(question)]
    for number, column in enumerate(columns):
        parts = [stem(part) for part in split_subwords(column.name.rpartition(".")[2]) if part not in _FLAG_WORDS]
        spots = [start for word, start in words if parts and word == parts[0]]
        if spots and column.is_flag and {word for word, _ in words}.issuperset(parts):
            yield _have(number, _NO if _NEGATED.search(question[max(0, spots[0] - _MAX_NEGATION_CHARS) : spots[0]]) else _YES)


def _find_gaps(question: str, columns: list[Column]) -> Iterator[Test]:
    """ "Without a licence" asks for rows that have nothing there."""
    partly = [column.name if not column.is_flag and any(cell in _NOTHING for cell in column.cells) else "" for column in columns]
    for found in islice(_ABSENT.finditer(question), _MAX_CONDITIONS):
        if (number := find_column(partly, [found[1].lower()])) is not None:
            yield _have(number, frozenset(map(str.lower, _NOTHING)))


def _have(column: int, accepted: frozenset[str]) -> Test:
    return lambda cells: cells[column].lower() in accepted
