"""The markers that say what was omitted, and how much."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from overspill.text.humanize import count_noun

ELLIPSIS = "…"


class Gap(Struct, frozen=True):
    """What is omitted between two kept ends, either of which may be empty."""

    head: str
    tail: str
    lines: int
    chars: int
    cuts_above: bool = False
    cuts_below: bool = False


Marker: TypeAlias = Callable[[Gap], str]


def middle(gap: Gap) -> str:
    return f"\n... [{gap.lines:,} lines / {gap.chars:,} chars omitted{_cuts(gap)}] ...\n"


def beginning(gap: Gap) -> str:
    return f"... [Beginning omitted: {gap.lines:,} lines / {gap.chars:,} chars{_cuts(gap)}] ..." + ("\n\n" if gap.tail else "")


def remainder(gap: Gap) -> str:
    blank = "" if not gap.head else "\n" if gap.head.endswith("\n") else "\n\n"
    return f"{blank}... [Remainder omitted: {gap.lines:,} lines / {gap.chars:,} chars{_cuts(gap)}] ..."


def brief(gap: Gap) -> str:
    return f"[{gap.chars:,} chars omitted]"


def _cuts(gap: Gap) -> str:
    if gap.cuts_above and gap.cuts_below:
        return "; the lines above and below are cut"
    if gap.cuts_above:
        return "; the line above is cut"
    return "; the line below is cut" if gap.cuts_below else ""


def in_string(chars: int) -> str:
    return f"... [{chars:,} chars omitted] ..."


def items(count: int) -> str:
    return f"... {count_noun(count, 'item')} omitted ..."


def keys(count: int) -> str:
    return f"{count_noun(count, 'key')} omitted"


def elements(count: int) -> str:
    return f"<!-- {count_noun(count, 'element')} omitted -->"


def characters(count: int) -> str:
    return f"<!-- {count_noun(count, 'char')} omitted -->"
