"""Reads stored bytes exactly: every answer is bounded and names where to continue. Everything here is pure and blocks."""

from overspill.reading.grep import Grep, grep
from overspill.reading.ranges import Bound, Passage, Range, around, bytes_range, chars, lines, raw

__all__ = ["Bound", "Grep", "Passage", "Range", "around", "bytes_range", "chars", "grep", "lines", "raw"]
