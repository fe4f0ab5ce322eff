"""An event loop in a thread of its own, which other threads hand work to.

anyio's portal would do the same, but it wakes the loop twice for each call, which takes longer than all the rest of a small one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager
from inspect import isawaitable
from threading import Condition, get_ident
from typing import TypeVar, cast

from anyio.from_thread import start_blocking_portal

from overspill.errors import BadRequest, SessionClosed

R = TypeVar("R")


class LoopThread:
    """Takes work between `start` and `stop`, from any thread but its own."""

    def __init__(self) -> None:
        self._thread = ExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._id = 0
        self._callers = 0
        self._fewer_callers = Condition()

    def start(self) -> None:
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal())
            self._loop, self._id = portal.call(lambda: (asyncio.get_running_loop(), get_ident()))
            self._thread = stack.pop_all()

    @property
    def is_running(self) -> bool:
        return self._loop is not None

    def run(self, work: Callable[[], Awaitable[R] | R]) -> R:
        with self._hold_loop() as loop:
            if loop is None:
                raise SessionClosed("The session is not open. Use `with SyncSession() as session`.")
            if get_ident() == self._id:
                raise BadRequest(
                    "This session was called in its own thread, which would wait for itself. "
                    "Make the tool that calls it a plain function instead of an async one, or use Session."
                )
            return _run_on(loop, work)

    def stop(self, last: Callable[[], Awaitable[object]]) -> None:
        """Take no more work, do the last, and end when all that was taken before has ended."""
        loop, self._loop = self._loop, None
        with self._thread:
            if loop is not None:
                _run_on(loop, last)
            with self._fewer_callers:
                self._fewer_callers.wait_for(lambda: not self._callers)

    @contextmanager
    def _hold_loop(self) -> Generator[asyncio.AbstractEventLoop | None]:
        """The loop, which does not end meanwhile. None if it has."""
        with self._fewer_callers:
            self._callers += 1
        try:
            yield self._loop
        finally:
            with self._fewer_callers:
                self._callers -= 1
                self._fewer_callers.notify_all()


def _run_on(loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[R] | R]) -> R:
    return asyncio.run_coroutine_threadsafe(_run(work), loop).result()


async def _run(work: Callable[[], Awaitable[R] | R]) -> R:
    result = work()
    return await result if isawaitable(result) else cast("R", result)
