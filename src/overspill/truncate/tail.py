"""Keeps the last lines; suits logs and the output of commands."""

from __future__ import annotations

from overspill.truncate import markers
from overspill.truncate.ends import BothEnds, Plan, shorten
from overspill.truncate.shape import Cut, Shape


def tail(ends: BothEnds, limit: int, shape: Shape) -> Cut:
    return shorten(ends, limit, "tail", Plan(markers.beginning, head_share=0, head_lines=0, tail_lines=shape.tail_lines))
