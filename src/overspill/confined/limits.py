"""What a worker process gives up before it looks at hostile input. Imported in the worker."""

from __future__ import annotations

import resource
import sys


def limit_seconds(seconds: int) -> None:
    """Of processor time, the start included. The system ends the process then."""
    _limit(resource.RLIMIT_CPU, seconds)


def give_up_everything_else(memory: int) -> None:
    """From here on no file can be opened, and no connection, so everything has to be imported."""
    if sys.platform != "darwin":  # which knows this limit and refuses to set it
        _limit(resource.RLIMIT_AS, memory)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, 0)


def _limit(what: int, most: int) -> None:
    hard = resource.getrlimit(what)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))
