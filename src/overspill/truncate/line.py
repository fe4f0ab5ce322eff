"""Keeps the first or the last lines, always whole."""

from __future__ import annotations

from overspill.truncate import markers
from overspill.truncate.ends import BothEnds, Plan, shorten
from overspill.truncate.shape import Cut, Shape


def line(ends: BothEnds, limit: int, shape: Shape) -> Cut:
    if shape.line_from == "start":
        plan = Plan(markers.remainder, head_share=1, head_lines=shape.head_lines, tail_lines=0, whole_lines=True)
    else:
        plan = Plan(markers.beginning, head_share=0, head_lines=0, tail_lines=shape.tail_lines, whole_lines=True)
    return shorten(ends, limit, "line", plan)
