"""Measures cells: numbers with units, dates with times, and durations (3h20m, 2 weeks ago)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from overspill.lexical.words import compile_phrases, read_list
from overspill.text.regex import regex

_NUMBER = regex(r"[-−]?\d[\d,' ]*(?:\.\d+)?")
_DECIMAL_COMMA = regex(r"[-−]?\d+,(?!\d{3}\b)\d+")
_BRACKETED = regex(r"\s*\(\s?[^\w\s()]?\s?\d[^()]{0,40}\)\s*")
"""A negative amount, as accountants write it."""
_PLAIN = str.maketrans("−", "-", ",' ")
_UNITS = "KMGTP"
_UNIT = regex(r" ?([kKMGTP])i?B?(?!\w)")
_YEAR = regex(r"\b(1[0-9]{3}|20[0-9]{2})\b")
_DATE = r"(?P<d1>\d{1,2})?\W{0,2}(?P<month>{months})[a-z]{0,20}\.?\W{0,2}(?P<d2>\d{1,2})?\b"
_ISO = regex(r"\b([12][0-9]{3})-([01][0-9])-([0-3][0-9])(?![0-9])")
_CLOCK = regex(r"(?<!\d)([0-2]?[0-9]):([0-5][0-9])(?::([0-5][0-9]))?(?!\d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0, "mo": 2_630_000.0, "y": 31_557_600.0}
_SPAN_PART = regex(r"(?i)((?<!\d)\d++(?:\.\d++)?|an?\b) ?(ms|mo(?=n)|[smhdwy])[a-z]*,? ?")
_SPAN = r"(?:up |about ){0,2}(?:(?:\d{1,15}(?:\.\d{1,15})?|an?) ?(?:ms|[smhdwy]|{units}s?)(?![a-z]),? ?){1,8}(?:ago)?"
_BARE = regex(r"(?i)[\d. ]+m")
_BEGINS = regex(r"\W{0,4}\d")
_MAX_CELL_CHARS = 200
"""The characters of a cell to read; any after these are ignored."""
_MAJORITY = 0.5
DAYS_OF_MONTH, DAYS_OF_YEAR = 31, 372
"""A calendar with months of equal length orders dates just as well."""

Scale: TypeAlias = Literal["number", "date", "span"]


def find_scale(cells: Sequence[str]) -> Scale:
    """The scale of a column. A bare `m` may mean metres or thousandths; both are ordered correctly as numbers."""
    heads = [cell[:_MAX_CELL_CHARS] for cell in cells]
    spans = [cell for cell in heads if compile_phrases(_SPAN).fullmatch(cell.strip())]
    if len(spans) > _MAJORITY * len(cells) and not all(_BARE.fullmatch(cell.strip()) for cell in spans):
        return "span"
    return "date" if any(compile_phrases(_DATE).search(cell) or _ISO.search(cell) for cell in heads) else "number"


def are_measures(cells: Sequence[str]) -> bool:
    """Whether cells begin with a measure, instead of just mentioning a number."""
    filled = [cell for cell in cells if cell.strip()]
    return sum(_BEGINS.match(cell) is not None for cell in filled) > _MAJORITY * len(filled) or find_scale(filled) != "number"


def measure(cell: str, scale: Scale = "number") -> float | None:
    """The value of a cell as a number: days for a date, seconds for a duration. None if it is not a measure."""
    cell = cell[:_MAX_CELL_CHARS]
    if scale == "date":
        return _count_days(cell)
    if scale == "span" and (parts := _SPAN_PART.findall(cell)):
        return sum((float(many) if many[0].isdigit() else 1.0) * _SECONDS[unit.lower()] for many, unit in parts)
    number = _NUMBER.search(cell)
    if not number:
        return None
    unit = _UNIT.match(cell, number.end())
    size = 1000.0 ** (1 + _UNITS.index(unit[1].upper())) if unit else 1.0
    plain = number[0].replace(",", ".") if _DECIMAL_COMMA.fullmatch(number[0].rstrip()) else number[0]
    return float(plain.translate(_PLAIN)) * (-size if _BRACKETED.fullmatch(cell) else size)


def _count_days(cell: str) -> float | None:
    clock = _CLOCK.search(cell)
    time = sum(int(part or 0) / 60**power for power, part in enumerate(clock.groups(), 1)) * 60 / 24 if clock else 0.0
    if iso := _ISO.search(cell):
        year, month, day = map(int, iso.groups())
        return _day(year, month - 1, day) + time
    year, date = _YEAR.search(cell), compile_phrases(_DATE).search(cell)
    if not year and not date:
        return None
    day = int(date["d1"] or date["d2"] or 1) if date else 1
    month = read_list("months").index(date["month"].lower()) if date else 0
    return _day(int(year[1]) if year else 0, month, day) + time


def _day(year: int, month: int, day: int) -> float:
    return float(year * DAYS_OF_YEAR + month * DAYS_OF_MONTH + day)
