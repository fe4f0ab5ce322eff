"""What a card says of a column: its type, its range or most frequent values, and how many cells are empty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from overspill.gate.cards.card import name
from overspill.tables.json_rows import write_cell
from overspill.tables.types import Reading, find_reading, is_value
from overspill.text.humanize import count_noun

MAX_VALUES = 4
"""Values that are named for one column."""
MAX_DISTINCT_SHARE = 0.5
"""With more different values, the most frequent ones say little."""
_TYPES: dict[type, str] = {bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}


def describe_column(column: str, cells: Sequence[Any], *, is_all: bool, is_json: bool = False) -> str:
    """`status text, ok 1,200, failed 30, 2 others; 3% missing`, or, if there are more cells, `status text, ok 96%, failed 2%,
    2 others seen; 3% missing`."""
    counts = Counter(cell.strip() for cell in cells if isinstance(cell, str))
    del counts[""]
    others = [cell for cell in cells if cell is not None and not isinstance(cell, str)]
    reading = None if others else find_reading(counts, column)
    if reading and reading.meaning != "boolean":
        counts = Counter({text: times for text, times in counts.items() if is_value(text)})
    missing = len(cells) - counts.total() - len(others)
    kinds = {*(_TYPES[type(cell)] for cell in others), *(["text"] if counts or not others else [])}
    kind = kinds.pop() if len(kinds) == 1 else "mixed"
    if missing == len(cells):
        return f"{name(column)} empty" if is_all else f"{name(column)} empty wherever seen"
    if kind in ("array", "object"):
        least, most = min(map(len, others)), max(map(len, others))
        described = f"{kind} of {least:,}" + (f" to {most:,}" if least < most else "")
    elif kind == "number" and min(others) < max(others):
        described = f"{kind} {write_cell(min(others))} to {write_cell(max(others))}"
    elif reading and reading.meaning != "boolean" and len(counts) > 1:
        described = _describe_read(counts, reading, is_json=is_json)
    else:
        meaning = _name_meaning(reading) if reading and not is_json else kind
        described = _describe_values(counts + Counter(map(write_cell, others)), 0 if is_all else len(cells), meaning)
    words = f"{name(column)} {described}" + ("" if is_all else " seen")
    return f"{words}; {_percent(missing, len(cells))} missing" if missing else words


def _name_meaning(reading: Reading) -> str:
    return "duration" if reading.meaning == "seconds" else reading.meaning


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.0f}%" if 1 <= share <= 99 else "under 1%" if share < 1 else "over 99%"


def _describe_read(counts: Counter[str], reading: Reading, *, is_json: bool) -> str:
    """`number 1 to 900, but "Total" once`."""
    fitting = [text for text in counts if reading.fits(text)]
    kind = "text, numbers" if is_json and reading.meaning == "number" else _name_meaning(reading)
    words = f"{kind} {name(min(fitting, key=reading.measure))} to {name(max(fitting, key=reading.measure))}"
    misfits = Counter({text: counts[text] for text in counts.keys() - {*fitting}})
    for text, times in misfits.most_common(1):
        words += f", but {name(text)} {'once' if times == 1 else f'{times:,} times'}"
        words += f" and {count_noun(misfits.total() - times, 'other')}" if misfits.total() > times else ""
    return words


def _describe_values(counts: Counter[str], seen: int, kind: str) -> str:
    """`seen`: of how many rows the cells are; 0 if of all that there are."""
    if len(counts) == 1:
        return f"{kind}, {'only' if seen else 'always'} {name(next(iter(counts)))}"
    if len(counts) > MAX_DISTINCT_SHARE * counts.total():
        return f"{kind}, all different" if not seen and len(counts) == counts.total() else f"{kind}, {len(counts):,} different"
    named = [f"{name(value)} {_percent(n, seen) if seen else f'{n:,}'}" for value, n in counts.most_common(MAX_VALUES)]
    others = len(counts) - len(named)
    return f"{kind}, {', '.join(named)}" + (f", {count_noun(others, 'other')}" if others else "")
