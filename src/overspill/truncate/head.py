"""Keeps the first lines."""

from __future__ import annotations

from overspill.truncate import markers
from overspill.truncate.ends import BothEnds, Plan, shorten
from overspill.truncate.shape import Cut, Shape


def head(ends: BothEnds, limit: int, shape: Shape) -> Cut:
    return shorten(ends, limit, "head", Plan(markers.remainder, head_share=1, head_lines=shape.head_lines, tail_lines=0))
