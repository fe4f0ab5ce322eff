"""End in order on Ctrl-C or SIGTERM: what a command opened is closed and removed first."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from types import FrameType

import anyio

from overspill.shell.waking import wake_on_signals

_ENDING = (signal.SIGINT, signal.SIGTERM)


class Interrupted(Exception):
    """A signal ended what was inside `cancel_on_signal`. `code` is what a shell reports for it."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


@contextmanager
def cancel_on_signal() -> Generator[None]:
    """On Ctrl-C or SIGTERM, cancel the task that is inside, even if it waits for a thread, and raise Interrupted.

    Another signal does not interrupt the clean-up. After it, one ends the process at once. Ctrl-C stays ignored where whoever
    started the command ignores it.
    """
    task = asyncio.current_task()
    assert task is not None
    received: list[int] = []

    def cancel(number: int, _: FrameType | None) -> None:
        if not received:
            task.cancel()
        received.append(number)

    def exit_now(*_: object) -> None:
        os._exit(128 + received[0])

    handled = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, cancel) for number in handled}
    try:
        with wake_on_signals():
            yield
    except asyncio.CancelledError:
        if not received:
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, exit_now if received else handler)
    if received:
        raise Interrupted(128 + received[0])


async def run_until_signal(run: Callable[[anyio.Event], Awaitable[None]]) -> None:
    """Set `stop` on the first signal, so that what runs can end in order. A second signal ends without waiting."""
    stop, failure = anyio.Event(), None
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with anyio.create_task_group() as group:

            async def listen() -> None:
                async for _ in signals:
                    if stop.is_set():
                        group.cancel_scope.cancel()
                    stop.set()

            group.start_soon(listen)
            try:
                await run(stop)
            except Exception as error:  # the group would wrap it
                failure = error
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure
