"""Let a signal wake the event loop."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def wake_on_signals() -> Generator[None]:
    """Inside, every signal wakes the running event loop, so that a handler set with `signal.signal` is called at once.

    Python calls it in the main thread only. If that waits for events, and the signal reached another thread or came just before
    the wait began, it would be called at the next event, which may be far away.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # no loop, or Trio's, which does it itself
        yield
        return
    woken, waking = socket.socketpair()
    with woken, waking:
        woken.setblocking(False)
        waking.setblocking(False)
        try:
            loop.add_reader(woken, woken.recv, 4096)
        except NotImplementedError:  # the loop of Windows does it itself
            yield
            return
        before = signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(woken)
