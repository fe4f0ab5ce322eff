"""Searches large buffers in pieces, because a single call would block all other threads until it returns."""

from __future__ import annotations

from mmap import mmap

PIECE_BYTES = 4 << 20
"""How much one call searches, which takes a few milliseconds."""


def find(data: bytes | bytearray | mmap, wanted: bytes, start: int = 0, end: int | None = None) -> int:
    """Like `data.find`."""
    end = len(data) if end is None else min(end, len(data))
    while start < end:
        stop = start + PIECE_BYTES
        if (found := data.find(wanted, start, min(stop + len(wanted) - 1, end))) >= 0:
            return found
        start = stop
    return -1
