"""Waiting for what nobody here can signal."""

from collections.abc import Callable

import anyio


async def until(holds: Callable[[], object], within: float = 30) -> None:
    """For what another process brings about."""
    with anyio.fail_after(within):
        while not holds():  # noqa: ASYNC110
            await anyio.sleep(0.01)
