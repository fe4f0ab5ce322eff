"""SQL, cards, engine and viewer read what real programs print: every row, name and cell, what columns mean, and their sums.

`NAME.json` says of each table in `NAME.txt`:
- `names`: "" where the output has no name for a column; then any will do.
- `rows`: text as it is printed, or values of JSON. `marks`: what is printed where there is no value, which may be none.
- `kinds` and `sums`, for each column: "" and null where nothing is expected. "text" must not become a number.
- `omitted`: how many rows the output does not show; that must be said.
- `may_be_absent`: no table at all is right too. `may_follow`: rows that may be the last ones, and `may_be_unread`: those that may
  be missing or empty, both only if the answer says so.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeAlias

import pytest
from asked_tables import Answer, ask_card, ask_engine, ask_sql, ask_viewer
from command_outputs import NAMES, OUTPUTS
from extras import needs
from slow import every_fourth

_Json: TypeAlias = "dict[str, _Json] | list[_Json] | str | int | float | None"
_SHOWN = sorted({path.stem for path in OUTPUTS.glob("*.json")} - set(NAMES))
_BESIDE = re.compile("_(number|date|time|utc|seconds|bytes|flag|percent|cores)")
"""How a column ends that has the values of one before it, typed."""
_KINDS = {
    "number": re.compile(
        r"(U?(BIG|HUGE|SMALL|TINY)INT|INTEGER|DOUBLE|DECIMAL.*|FLOAT)|number|bytes|cores|percent|seconds|(int ?|float ?)+"
    ),
    "boolean": re.compile("BOOLEAN|boolean|bool"),
    "date": re.compile("DATE|TIMESTAMP.*|date|time"),
}


@needs("duckdb", "sql")
@pytest.mark.parametrize("name", every_fourth(_SHOWN))
def test_sql_reads_what_programs_print(name: str):
    _check(name, ask_sql)


@pytest.mark.parametrize("name", _SHOWN)
def test_cards_read_what_programs_print(name: str):
    _check(name, ask_card)


@pytest.mark.parametrize("name", _SHOWN)
def test_the_engine_reads_what_programs_print(name: str):
    _check(name, ask_engine)


def test_the_viewer_shows_the_tables_that_programs_print_as_rows():
    shown = [name for name in _SHOWN if ask_viewer((OUTPUTS / f"{name}.txt").read_bytes())]
    assert len(shown) >= 14
    for name in shown:
        _check(name, ask_viewer)


def _check(name: str, ask: Callable[[bytes], list[Answer]]) -> None:
    answers = ask((OUTPUTS / f"{name}.txt").read_bytes())
    tables = json.loads((OUTPUTS / f"{name}.json").read_text())
    if not answers and all(table.get("may_be_absent") for table in tables):
        return
    for table in tables:
        differences = [_find_differences(table, answer) for answer in answers]
        assert [] in differences, min(differences, key=len, default="no table")
        del answers[differences.index([])]  # further tables, such as lists inside rows, do no harm


def _find_differences(table: dict[str, Any], answer: Answer) -> list[object]:
    compare = _compare_json if table.get("is_json") else _compare_cells
    names, rows, given = table["names"], table["rows"], answer.rows
    follow, unread = table.get("may_follow", []), table.get("may_be_unread", [])
    is_followed = bool(follow) and len(given) == len(rows) + len(follow) and _is_said(len(follow), answer.said)
    if is_followed:
        rows = rows + follow
    if unread and _is_said(len(unread), answer.said):
        rows = [row for number, row in enumerate(rows) if number not in unread]
        given = [row for row in given if any(cell is not None for cell in row)]
    if len(rows) != len(given):
        return ["rows", len(rows), len(given)]
    if str(table.get("omitted", "")) not in answer.said:
        return ["says nothing of rows that are not shown", answer.said]
    places = {name: [number, *_find_beside(name, answer.names)] for number, name in enumerate(answer.names)}
    wrong = list(compare(table, rows, answer, given))
    kinds, sums = table.get("kinds", names), table.get("sums", [None] * len(names))
    for number, (name, kind, total) in enumerate(zip(names, kinds, sums, strict=True)):
        where = places.get(name) or places[answer.names[number]] if number < len(answer.names) else []
        if kind in _KINDS and answer.kinds and not any(_KINDS[kind].fullmatch(answer.kinds[place]) for place in where):
            wrong.append((name, kind, [answer.kinds[place] for place in where]))
        if total is not None and answer.is_typed:
            found = [_add_up(given, place) for place in where if _KINDS["number"].fullmatch(answer.kinds[place])]
            right = (total, 2 * total) if is_followed else (total,)  # with a row that sums up others
            if not any(math.isclose(one, other, rel_tol=1e-6) for one in right for other in found):
                wrong.append((name, total, found))
    return wrong


def _compare_cells(table: dict[str, Any], rows: list[list[Any]], answer: Answer, given: list[list[Any]]) -> Iterator[object]:
    names, width = table["names"], len(table["names"])
    beside = {number for name in answer.names[:width] for number in _find_beside(name, answer.names)}
    own = [name for number, name in enumerate(answer.names) if number < width or number not in beside]
    if len(own) != width or any(name not in ("", found) for name, found in zip(names, own, strict=True)):
        yield names, own
    if len(set(answer.names)) < len(answer.names):
        yield "names that repeat", answer.names
    kinds = table.get("kinds", names)
    for row, cells in zip(rows, given, strict=True):
        cells = [*cells, *[None] * (width - len(cells))]
        more = cells[len(answer.names) :]
        if not all(map(_is_empty, more)) or not all(
            _is_same(cell, found, kind, table) for cell, found, kind in zip(row, cells[:width], kinds, strict=True)
        ):
            yield row, cells


def _compare_json(table: dict[str, Any], rows: list[list[Any]], answer: Answer, given: list[list[Any]]) -> Iterator[object]:
    kinds = dict(zip(table["names"], table.get("kinds", table["names"]), strict=True))
    for row, cells in zip(rows, given, strict=True):
        values = _flatten(dict(zip(table["names"], row, strict=True)))
        found = _flatten(dict(zip(answer.names, cells, strict=True)))
        for path in values.keys() | found.keys():
            is_beside = path not in values and any(_is_beside(path, name) for name in values)
            if not is_beside and not _is_same(values.get(path), found.get(path), kinds.get(path, ""), table):
                yield path, values.get(path), found.get(path)


def _flatten(value: _Json, at: str = "") -> dict[str, _Json]:
    """The values by their paths; those of objects in a list are one list, as the engine reads them. None where there are none."""
    value = _parse(value)
    if isinstance(value, dict):
        inside = (_flatten(each, f"{at}.{key}" if at else key) for key, each in value.items())
        return {path: each for values in inside for path, each in values.items()}
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        paths = dict.fromkeys(path for each in value for path in _flatten(each, at))
        return {path: [_flatten(each, at).get(path) for each in value] for path in paths}
    return {} if _is_empty(value) else {at: value}


def _parse(value: _Json) -> _Json:
    """Lists and objects may be written as text."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        for parse in (json.loads, ast.literal_eval):
            try:
                return parse(value)
            except (ValueError, SyntaxError):
                continue
    return None if value == "None" else value


def _is_empty(value: _Json) -> bool:
    if isinstance(value, list):
        return all(map(_is_empty, value))
    return value in (None, {}) or (isinstance(value, str) and not value.strip())


def _is_same(cell: _Json, found: _Json, kind: str, table: dict[str, Any]) -> bool:
    if _is_empty(cell) or _is_empty(found):
        return all(_is_empty(each) or each in table.get("marks", ()) for each in (cell, found))
    if isinstance(cell, list) and isinstance(found, list):
        return len(cell) == len(found) and all(_is_same(*pair, "", table) for pair in zip(cell, found, strict=True))
    text, other = (str(each).strip().replace("\r\n", "\n") for each in (cell, found))
    if text == other or kind == "text":
        return text == other
    if kind == "boolean" or isinstance(cell, bool):
        return text.lower() in ("true", "false", "t", "f") and text.lower()[0] == other.lower()[0]
    if re.fullmatch(r"0\d+", text):
        return False
    for read in (float, _read_time):
        try:
            return read(text) == read(other)
        except ValueError:
            continue
    return isinstance(found, int | float) and text.replace(",", "") == other


def _read_time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _is_said(rows: int, said: str) -> bool:
    return bool(re.search(rf"(?<![\d,]){rows} rows? (with|that|have|could)", said)) or (rows == 1 and "sums up" in said)


def _find_beside(name: str, names: list[str]) -> list[int]:
    return [number for number, each in enumerate(names) if _is_beside(each, name)]


def _is_beside(name: str, other: str) -> bool:
    return name.startswith(other) and _BESIDE.fullmatch(name, len(other)) is not None


def _add_up(rows: list[list[Any]], column: int) -> float:
    return sum(row[column] for row in rows if row[column] is not None)
