"""How the memory of a process that runs for days stays as small as what it holds."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # of <malloc.h>
_LARGE_BYTES = 1 << 20


def keep_memory_together() -> None:
    """Have the C library serve all threads from one heap, and give large blocks back to the system. Otherwise each conversation
    leaves holes in the heaps of several threads that the next ones don't fill. Does nothing without glibc."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_ARENA_MAX, 1)
        library.mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
