"""Start a worker process for each task, and end it in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Condition, Lock
from typing import cast

from msgspec import Struct

_PACKAGES = ("overspill", "msgspec", "duckdb", "jsonschema", "pypdf")
"""What workers import."""


class Finished(Struct, frozen=True):
    """What a worker wrote, and whether it ended by itself and without a failure."""

    output: bytes
    is_complete: bool
    is_late: bool = False
    """Whether it ran out of wall-clock or processor time."""


class Processes:
    """Child processes that can be ended together, from another thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self.are_ended = False

    def end(self) -> None:
        """Kill those that are running, and any that start later."""
        with self._lock:
            self.are_ended = True
            for process in self._running:
                process.kill()

    @contextmanager
    def hold(self, process: subprocess.Popen[bytes]) -> Generator[None]:
        with self._lock:
            self._running.add(process)
            if self.are_ended:
                process.kill()
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(process)


class FairPlaces:
    """Places for processes. The waiting owner served longest ago is next. An owner has at most `most_each` places. If that is
    fewer than there are, one owner cannot block the others."""

    def __init__(self, count: int, most_each: int) -> None:
        self._free = count
        self._most_each = most_each
        self._changed = Condition()
        self._taken: dict[object, int] = {}
        self.waiting: dict[object, int] = {}
        self._served: list[object] = []
        """Owners that have or want a place and were served before, the one served longest ago first."""

    def take(self, owner: object, deadline: float) -> bool:
        """Take a place. Blocks until it is this owner's turn. Returns False if the deadline comes first."""
        with self._changed:
            self.waiting[owner] = self.waiting.get(owner, 0) + 1
            try:
                if not self._changed.wait_for(lambda: self._is_next(owner), max(0.0, deadline - time.monotonic())):
                    return False
                self._free -= 1
                self._taken[owner] = self._taken.get(owner, 0) + 1
                self._served = [each for each in self._served if each != owner] + [owner]
                return True
            finally:
                self._count_down(self.waiting, owner)

    def give_back(self, owner: object) -> None:
        with self._changed:
            self._free += 1
            self._count_down(self._taken, owner)

    def _is_next(self, owner: object) -> bool:
        ready = [each for each in self.waiting if self._free > 0 and self._taken.get(each, 0) < self._most_each]
        return owner in ready and owner == min(ready, key=lambda each: self._served.index(each) if each in self._served else -1)

    def _count_down(self, counts: dict[object, int], owner: object) -> None:
        counts[owner] -= 1
        if not counts[owner]:
            del counts[owner]
        if owner not in self._taken and owner not in self.waiting:
            self._served = [each for each in self._served if each != owner]
        self._changed.notify_all()


class Worker:
    """A script of ours that reads its work from standard input and writes its answer to standard output.

    `max_running` processes at a time, `max_each` of them for the same owner; each is killed after `max_seconds`. It ends sooner
    by itself, when it has used its processor time. Its arguments come before the folders to import from.
    """

    def __init__(self, script: Path, *arguments: str, max_running: int, max_seconds: float, max_each: int | None = None) -> None:
        self._started = (str(script), *arguments)
        self._seconds = max_seconds
        self._places = FairPlaces(max_running, max_each or max_running)

    @staticmethod
    def can_run() -> bool:
        return bool(sys.executable) and not getattr(sys, "frozen", False)

    def run(
        self, data: bytes | memoryview, seconds: float | None = None, processes: Processes | None = None, owner: str = ""
    ) -> Finished:
        """Run the worker. Blocks. `seconds` replaces `max_seconds`; the time until a place is free counts too. The process is one
        of `processes` while it runs, and they own it if no owner is named. Raises OSError if it could not be started."""
        deadline = time.monotonic() + (self._seconds if seconds is None else seconds)
        # -I and -S: only our own path decides what the worker imports, not the environment or the working directory.
        command = [sys.executable, "-I", "-S", *self._started, *_list_folders()]
        processes = processes or Processes()
        owned_by = owner or processes
        if not self._places.take(owned_by, deadline):
            return Finished(b"", is_complete=False, is_late=True)
        try:
            pipe = subprocess.PIPE
            with (
                subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env={}) as process,  # noqa: S603
                processes.hold(process),
            ):
                try:
                    output, _ = process.communicate(cast("bytes", data), timeout=max(0.0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    process.kill()
                    return Finished(process.communicate()[0], is_complete=False, is_late=True)
                except BaseException:
                    process.kill()
                    raise
                return Finished(output, process.returncode == 0, -process.returncode in (signal.SIGALRM, signal.SIGXCPU))
        finally:
            self._places.give_back(owned_by)


def _list_folders() -> list[str]:
    """The folders to import from: our path, and those of packages found in the working directory or by an import hook."""
    specs = filter(None, map(find_spec, _PACKAGES))
    found = [os.path.dirname(os.path.dirname(os.path.abspath(spec.origin))) for spec in specs if spec.origin]
    return list(dict.fromkeys([*filter(None, sys.path), *found]))
