"""Start a worker process for one piece of work, and end it in time."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from threading import BoundedSemaphore
from typing import cast

from msgspec import Struct


class Finished(Struct, frozen=True):
    """What a worker wrote until it ended, and whether it ended by itself and without a failure."""

    output: bytes
    is_complete: bool


class Worker:
    """A script of ours that reads its work from standard input and writes its answer to standard output.

    `max_running` processes at a time; each is killed after `max_seconds`. It ends sooner by itself, when it has used its
    processor time.
    """

    def __init__(self, script: Path, *, max_running: int, max_seconds: float) -> None:
        self._script = str(script)
        self._seconds = max_seconds
        self._places = BoundedSemaphore(max_running)

    @staticmethod
    def can_run() -> bool:
        return bool(sys.executable) and not getattr(sys, "frozen", False)

    def run(self, data: bytes | memoryview, seconds: float | None = None) -> Finished:
        """Blocks. `seconds` replaces `max_seconds` for this piece of work; the time until a place is free counts too. Raises
        OSError if the process could not be started."""
        deadline = time.monotonic() + (self._seconds if seconds is None else seconds)
        # -I and -S: nothing of the environment or the working directory decides what the worker imports, only our own path does.
        command = [sys.executable, "-I", "-S", self._script, *filter(None, sys.path)]
        if not self._places.acquire(timeout=deadline - time.monotonic()):
            return Finished(b"", is_complete=False)
        try:
            left = max(0.0, deadline - time.monotonic())
            done = subprocess.run(command, input=data, capture_output=True, env={}, timeout=left, check=False)  # noqa: S603
        except subprocess.TimeoutExpired as error:
            return Finished(cast("bytes | None", error.output) or b"", is_complete=False)
        finally:
            self._places.release()
        return Finished(done.stdout, done.returncode == 0)
