"""Decides which work leaves the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

MAX_BYTES_ON_LOOP = 16 * 1024
"""Up to this size, work stays on the loop, because switching threads takes about as long."""
T = TypeVar("T")


async def run_off_loop(work: Callable[[], T], size: int) -> T:
    """Run `work` on `size` bytes in a thread, if that is worth it."""
    return work() if size <= MAX_BYTES_ON_LOOP else await anyio.to_thread.run_sync(work)
