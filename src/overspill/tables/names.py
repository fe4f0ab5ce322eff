"""Names of columns and tables that can be told apart."""

from __future__ import annotations

import re
from collections.abc import Iterable

ROW = "_row"
"""The column that says where a row is in the output."""
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_MAX_NAME_CHARS = 40


def make_unique(names: Iterable[str]) -> list[str]:
    """Every column needs a name, and SQL does not tell `Id` from `id`."""
    taken = {ROW: 1}
    unique: list[str] = []
    for number, name in enumerate(names, 1):
        unique.append(choose_name(name.strip().replace("\0", "") or f"column{number}", taken))
    return unique


def choose_name(name: str, taken: dict[str, int]) -> str:
    """A name for a column that no other has. `taken` has the others in lower case, and this one afterwards, each with the number
    that was last put behind it: a name may occur ten thousand times."""
    chosen, key = name, name.lower()
    count = taken.get(key, 0)
    while chosen.lower() in taken:
        count += 1
        chosen = f"{name}_{count}"
    taken[key], taken[chosen.lower()] = max(1, count), 1
    return chosen


def make_name(title: str) -> str:
    """A name for SQL from a caption or a key; empty if nothing is left of it."""
    return _NOT_IN_NAMES.sub("_", title.lower()).strip("_")[:_MAX_NAME_CHARS].rstrip("_")


def name_column(headers: list[list[str]], column: int) -> str:
    """Headers over several rows: "2023 Revenue"."""
    parts = [row[column] for row in headers if column < len(row) and row[column]]
    return " ".join(dict.fromkeys(parts))
