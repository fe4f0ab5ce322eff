"""Keeps both ends, as many characters as fit."""

from __future__ import annotations

from overspill.truncate import markers
from overspill.truncate.ends import BothEnds, Plan, shorten
from overspill.truncate.shape import Cut, Shape


def head_tail(ends: BothEnds, limit: int, shape: Shape) -> Cut:
    return shorten(ends, limit, "head_tail", Plan(markers.middle, shape.head_ratio, head_lines=None, tail_lines=None))
