"""How much a search may do. It is counted in bytes, so that it finds the same on every machine, however busy."""

from __future__ import annotations

from msgspec import Struct


class Work(Struct, frozen=True):
    read: int
    """From the beginning of the output on, to find the words of the question."""
    cut: int
    """Into records, which are compared with the question: all of the output, or the parts with its words."""


QUICK = Work(32 << 20, 1 << 20)
"""For a reply that waits for the search: about a second of processor time."""
