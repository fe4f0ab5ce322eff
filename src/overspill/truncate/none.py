"""Keeps everything and ignores the limit."""

from __future__ import annotations

from overspill.truncate.shape import Cut, Shape


def none(text: str, limit: int, shape: Shape) -> Cut:
    return Cut(text, "none")
