"""Waiting for what nobody here can signal."""

import os
import threading
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


def wait_until(look: Callable[[], Found], within: float = 60) -> Found:
    """The same without an event loop. Returns what was found in the end."""
    deadline = time.monotonic() + within
    while not (found := look()):
        assert time.monotonic() < deadline, found
        threading.Event().wait(0.02)
    return found
