"""End a command on SIGTERM as Ctrl-C does: what it opened is closed and removed first."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager

from overspill.cli import ending


@contextmanager
def cancel_on_termination() -> Generator[None]:
    """On SIGTERM, cancel the task that is inside, as asyncio does on Ctrl-C: even if it waits for a thread.

    Another SIGTERM does not interrupt the clean-up.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def cancel(*_: object) -> None:
        if not task.cancelling():
            task.cancel()
            loop.call_soon_threadsafe(lambda: None)  # wake the loop

    def exit_now(*_: object) -> None:
        os._exit(ending.TERMINATED)

    before = signal.signal(signal.SIGTERM, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, exit_now if task.cancelling() else before)
