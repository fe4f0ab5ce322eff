"""Waiting for what nobody here can signal."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import anyio

Found = TypeVar("Found")


async def until(holds: Callable[[], object], within: float = 30) -> None:
    """For what another process brings about."""
    with anyio.fail_after(within):
        while not holds():  # noqa: ASYNC110
            await anyio.sleep(0.01)


def list_paths(place: Path) -> list[Path]:
    """All that is below, also while others remove some of it, which `rglob` does not survive."""
    return [Path(folder, name) for folder, folders, files in os.walk(place) for name in (*folders, *files)]


def wait_until(look: Callable[[], Found], holds: Callable[[Found], object] = bool, within: float = 60) -> Found:
    """The same without an event loop. Returns what was found in the end."""
    deadline = time.monotonic() + within
    while not holds(found := look()):
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    return found
