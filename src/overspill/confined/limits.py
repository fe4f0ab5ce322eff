"""What a worker process gives up before it looks at hostile input. Imported in the worker."""

from __future__ import annotations

import math
import os
import resource
import select
import sys
import threading
import time


def end_with_reader() -> None:
    """End this process as soon as the one that reads its answer is gone, which can no longer stop it or use the answer."""

    def wait() -> None:
        watched = select.poll()
        watched.register(1, 0)
        watched.poll()  # without any events, it still reports that a pipe has no reader
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def limit_seconds(seconds: float) -> None:
    """Limit processor time, including the start. The system then ends the process."""
    _limit(resource.RLIMIT_CPU, math.ceil(seconds), reserve=1)  # so that SIGXCPU ends it, not SIGKILL


def limit_more_seconds(seconds: float) -> None:
    """Like `limit_seconds`, but counted from now."""
    limit_seconds(time.process_time() + seconds)


def limit_files(size: int) -> None:
    """Limit the size of the files it writes, and write no core dump when it crashes."""
    _limit(resource.RLIMIT_FSIZE, size)
    _limit(resource.RLIMIT_CORE, 0)


def limit_memory(size: int, reserve: int = 0) -> None:
    """Limit the address space, which is larger than the memory in use. The limit can be raised by `reserve`."""
    if sys.platform != "darwin":  # macOS has this limit but refuses to set it
        _limit(resource.RLIMIT_AS, size, reserve)


def give_up_everything_else(memory: int) -> None:
    """Limit memory, and let the process open nothing more. Import everything first."""
    limit_memory(memory)
    _limit(resource.RLIMIT_CORE, 0)
    open_no_more()


def open_no_more() -> None:
    """Let the process open no more files or connections. It can still use what is already open."""
    _limit(resource.RLIMIT_NOFILE, 0)


def _limit(what: int, most: int, reserve: int = 0) -> None:
    hard = resource.getrlimit(what)[1]
    limits = most, most + reserve
    resource.setrlimit(what, limits if hard == resource.RLIM_INFINITY else (min(limits[0], hard), min(limits[1], hard)))
