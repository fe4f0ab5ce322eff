"""Wait on the event loop, for input or for Ctrl-C or SIGTERM. A signal closes and removes what the command opened."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import BinaryIO, NoReturn, TypeVar

import anyio
import anyio.to_thread

from overspill.calls.tasks import open_group
from overspill.cli.logs import unread_stderr_allowed
from overspill.cli.output import ask_to_type
from overspill.shell.command import wake_on_signals

_ENDING = (signal.SIGINT, signal.SIGTERM)
_BLOCK_BYTES = 1 << 20
_Value = TypeVar("_Value")


class Interrupted(Exception):
    """A signal ended the work inside `cancel_on_signal`. `code` is what a shell reports for it."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


@contextmanager
def cancel_on_signal() -> Generator[None]:
    """On Ctrl-C or SIGTERM, cancel the current task, even if it waits for a thread, and raise Interrupted.

    Another signal does not interrupt the clean-up, but one that arrives afterwards ends the process immediately. If the parent
    process ignores Ctrl-C, so does the command.
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


def run_until_done(work: Callable[[], Awaitable[_Value]], leave: Callable[[int], NoReturn] = sys.exit) -> _Value:
    """Run `work` on an event loop. If a signal ends it, leave with the code that a shell reports for that."""

    async def run() -> _Value:
        with cancel_on_signal():
            return await work()

    try:
        return anyio.run(run)
    except Interrupted as ended:
        leave(ended.code)


def serve_until_signal(run: Callable[[anyio.Event], Awaitable[None]]) -> None:
    """For commands that serve. Writing to standard error does not block them, even if it has no reader."""
    with unread_stderr_allowed():
        anyio.run(run_until_signal, run)


async def run_until_signal(run: Callable[[anyio.Event], Awaitable[None]]) -> None:
    """Set `stop` on the first signal, which lets `run` shut down cleanly. A second signal cancels it without waiting."""
    stop = anyio.Event()
    with anyio.open_signal_receiver(*_ENDING) as signals:
        async with open_group() as group:

            async def listen() -> None:
                async for _ in signals:
                    if stop.is_set():
                        group.cancel_scope.cancel()
                    stop.set()

            group.start_soon(listen)
            await run(stop)
            group.cancel_scope.cancel()


async def read_stream(file: BinaryIO) -> AsyncIterator[bytes]:
    """Input that may block is not read in a thread, because Ctrl-C could not end that. One Ctrl-D ends the input."""
    ask_to_type(file, "Reading")  # not earlier: the user may answer with Ctrl-C, which is handled only now
    fd = file.fileno()
    mode = os.fstat(fd).st_mode
    may_wait = file.isatty() or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    while True:
        if may_wait:
            await anyio.wait_readable(file)
        block = os.read(fd, _BLOCK_BYTES) if may_wait else await anyio.to_thread.run_sync(os.read, fd, _BLOCK_BYTES)
        if not block:
            return
        yield block
