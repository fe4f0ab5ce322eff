"""Run until Ctrl-C or SIGTERM, and end in order."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable

import anyio


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
