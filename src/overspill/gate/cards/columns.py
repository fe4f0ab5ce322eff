"""What a card says of a column: its type, its range or most frequent values, and how many cells are empty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Sized
from types import NoneType
from typing import Any

from overspill.gate.cards.card import name
from overspill.tables.json_rows import write_cell
from overspill.tables.types import Reading, find_reading, is_value
from overspill.text.humanize import count_noun

MAX_VALUES = 4
"""Values that are named for one column."""
MAX_DISTINCT_SHARE = 0.5
"""With more different values, the most frequent ones say little."""
_MEANINGS = {"seconds": "duration"}
_TYPES: dict[type, str] = {bool: "boolean", list: "array", dict: "object"}


def describe_column(column: str, cells: Sequence[Any], *, is_all: bool, is_json: bool = False) -> str:
    """`status text, ok 1,200, failed 30, 2 others; 3% missing`, or, if there are more cells, `status text, ok 96%, failed 2%,
    2 others seen; 3% missing`."""
    seen = 0 if is_all else len(cells)
    kinds = {*map(type, cells)} - {NoneType}
    filled = [cell for cell in cells if cell is not None] if NoneType in map(type, cells) else cells
    counts = (
        Counter(map(str.strip, filled)) if kinds == {str} else Counter(each.strip() for each in filled if isinstance(each, str))
    )
    del counts[""]
    others = [] if kinds == {str} else [cell for cell in filled if not isinstance(cell, str)]
    kind, reading = "text", None
    if others:
        kind = "mixed" if counts else _find_type(kinds)
    elif (reading := find_reading(counts, column)) and reading.meaning != "boolean":
        for text in [text for text in counts if not is_value(text)]:
            del counts[text]
    missing = len(cells) - counts.total() - len(others)
    if missing == len(cells):
        return f"{name(column)} empty" if is_all else f"{name(column)} empty wherever seen"
    if kind in ("array", "object"):
        sizes = [len(cell) for cell in others if isinstance(cell, Sized)]
        described = f"{kind} of {min(sizes):,}" + (f" to {max(sizes):,}" if min(sizes) < max(sizes) else "")
    elif reading:
        described = _describe_read(counts, reading, seen, is_json=is_json)
    else:
        # Of numbers, only the least and the greatest are named.
        counts.update(map(write_cell, (min(others), max(others)) if kind == "number" else others))
        described = _describe_values(counts, seen, kind)
    words = f"{name(column)} {described}" + ("" if is_all else " seen")
    return f"{words}; {_percent(missing, len(cells))} missing" if missing else words


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.0f}%" if 1 <= share <= 99 else "under 1%" if share < 1 else "over 99%"


def _describe_read(counts: Counter[str], reading: Reading, seen: int, *, is_json: bool) -> str:
    """`number 1 to 900, but "Total" once`."""
    meaning = _MEANINGS.get(reading.meaning, reading.meaning)
    if reading.meaning == "boolean" or len(counts) == 1:
        return _describe_values(counts, seen, "text" if is_json else meaning)
    fitting = [text for text in counts if reading.fits(text)]
    kind = f"text, {meaning}s" if is_json and meaning == "number" else meaning
    words = f"{kind} {name(min(fitting, key=reading.measure))} to {name(max(fitting, key=reading.measure))}"
    if len(fitting) == len(counts):
        return words
    (text, times), *rest = (counts - Counter({text: counts[text] for text in fitting})).most_common()
    more = f" and {count_noun(sum(each for _, each in rest), 'other')}" if rest else ""
    return f"{words}, but {name(text)} {'once' if times == 1 else f'{times:,} times'}{more}"


def _describe_values(counts: Counter[str], seen: int, kind: str) -> str:
    """`seen`: of how many rows the cells are; 0 if of all that there are."""
    if len(counts) == 1:
        return f"{kind}, {'only' if seen else 'always'} {name(next(iter(counts)))}"
    if kind == "number":
        return f"{kind} {name(min(counts, key=float))} to {name(max(counts, key=float))}"
    if len(counts) > MAX_DISTINCT_SHARE * counts.total():
        return f"{kind}, all different" if not seen and len(counts) == counts.total() else f"{kind}, {len(counts):,} different"
    most = counts.most_common(MAX_VALUES)
    named = [f"{name(value)} {_percent(times, seen) if seen else f'{times:,}'}" for value, times in most]
    others = len(counts) - len(named)
    return f"{kind}, {', '.join(named)}" + (f", {count_noun(others, 'other')}" if others else "")


def _find_type(kinds: set[type]) -> str:
    if kinds <= {int, float}:
        return "number"
    return _TYPES[next(iter(kinds))] if len(kinds) == 1 else "mixed"
