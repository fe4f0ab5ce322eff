"""Start a worker process for one piece of work, and end it in time."""

from __future__ import annotations

import subprocess
import sys
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

    def run(self, data: bytes | memoryview) -> Finished:
        """Blocks. Raises OSError if the process could not be started."""
        # -I and -S: nothing of the environment or the working directory decides what the worker imports, only our own path does.
        command = [sys.executable, "-I", "-S", self._script, *filter(None, sys.path)]
        try:
            with self._places:
                done = subprocess.run(  # noqa: S603
                    command, input=data, capture_output=True, env={}, timeout=self._seconds, check=False
                )
        except subprocess.TimeoutExpired as error:
            return Finished(cast("bytes | None", error.output) or b"", is_complete=False)
        return Finished(done.stdout, done.returncode == 0)
