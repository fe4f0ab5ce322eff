"""The figures behind the plots: what entered the context and what was kept out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from typing import Literal, TypeAlias, TypeVar

from msgspec import Struct

from overspill.record.events import Entry, OutputRetrieved, OutputStored, TextShown, ToolCalled, TurnOpened
from overspill.text.tokens import CHARS_PER_TOKEN
from overspill.view.records import DAY_MS, Savings, SavingsKey, SessionRecord

MAX_POINTS = 2_000
"""Of a plot. With more, each point stands for several steps."""
Grouping: TypeAlias = Literal["tool", "server", "day"]
N = TypeVar("N", int, str)
GROUPINGS: dict[str, Grouping] = {"tool": "tool", "server": "server", "day": "day"}


class ContextPoint(Struct, frozen=True):
    """After this step: tokens that entered so far, and tokens of kept outputs that were not shown so far."""

    step: int
    label: str
    entered: int
    kept_out: int


def plot_context(events: Iterable[Entry]) -> list[ContextPoint]:
    """A point for each turn, or for each call where nobody recorded turns."""
    entered = produced = shown_of_kept = 0
    points: list[ContextPoint] = []
    turns: list[ContextPoint] = []
    for event in events:
        match event:
            case ToolCalled():
                entered += event.chars_out
                shown_of_kept += event.chars_out if event.truncated else 0
            case OutputRetrieved(status="ok"):
                entered += event.chars_out
                shown_of_kept += event.chars_out if event.id else 0
            case TextShown(what="output" | "news"):  # a notice leaves the context again
                entered += event.chars
                shown_of_kept += event.chars if event.what == "output" else 0
                points.append(_point(len(points) + 1, event.what, entered, produced, shown_of_kept))
                continue
            case OutputStored(kept=kept) if kept.reason != "requested":
                produced += kept.size.tokens
                continue
            case TurnOpened():
                turns.append(_point(len(turns), f"before turn {event.turn}", entered, produced, shown_of_kept))
                continue
            case _:
                continue
        points.append(_point(len(points) + 1, event.tool, entered, produced, shown_of_kept))
    if turns:
        points = [*turns, _point(len(turns), "now", entered, produced, shown_of_kept)]
    return _thin(points)


def _point(step: int, label: str, entered: int, produced: int, shown: int) -> ContextPoint:
    return ContextPoint(step, label, entered // CHARS_PER_TOKEN, max(0, produced - shown // CHARS_PER_TOKEN))


def _thin(points: list[ContextPoint]) -> list[ContextPoint]:
    every = -(-len(points) // MAX_POINTS)
    return points if every <= 1 else [*points[:-1:every], points[-1]]


def sum_savings(records: Iterable[SessionRecord], grouping: Grouping) -> list[tuple[str, Savings]]:
    """By tool or server, the most saved first; by day, in order."""
    rows = _sum_by(lambda key: _name(key, grouping), records).items()
    return sorted(rows) if grouping == "day" else sorted(rows, key=lambda row: -row[1].saved_tokens)


def sum_days(records: Iterable[SessionRecord]) -> list[tuple[int, Savings]]:
    """By the second at which each day begins."""
    return [(day * (DAY_MS // 1000), found) for day, found in sorted(_sum_by(lambda key: key.day, records).items())]


def _sum_by(name: Callable[[SavingsKey], N], records: Iterable[SessionRecord]) -> dict[N, Savings]:
    sums: dict[N, Savings] = {}
    for record in records:
        for key, found in record.savings.items():
            sums.setdefault(name(key), Savings()).add(found)
    return sums


def _name(key: SavingsKey, grouping: Grouping) -> str:
    if grouping == "day":
        return _format_day(key.day)
    return key.tool if grouping == "tool" else key.server or "(none)"


def _format_day(day: int) -> str:
    try:
        return date.fromordinal(date(1970, 1, 1).toordinal() + day).isoformat()
    except (OverflowError, ValueError):  # from a damaged journal
        return "1970-01-01"
