"""Whether work grows no faster than its input. It measures this thread's own time, which other programs hardly lengthen."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from time import thread_time

GROWTH = 8.0
"""How much longer four times as much may take: linear is 4, quadratic 16."""
_TIMES = 3


class _TooLong(BaseException):
    pass


def is_linear(work: Callable[[int], Callable[[], object]], size: int, *, quick: float, hopeless: float) -> bool:
    """`work` prepares what is measured, for a size. Four times the size in less than `quick` seconds is linear, in more than
    `hopeless` seconds it is not. A machine that is shared takes time from this one now and then: it is asked again before it
    is believed that something is not linear."""
    return any(_seems_linear(work, size, quick, hopeless) for _ in range(_TIMES))


def _seems_linear(work: Callable[[int], Callable[[], object]], size: int, quick: float, hopeless: float) -> bool:
    four = work(4 * size)
    longer = seconds(four, hopeless)
    if longer < quick or longer > hopeless:
        return longer < quick
    one = work(size)
    shorter = min(seconds(one, hopeless) for _ in range(_TIMES))
    return longer < GROWTH * shorter or min(seconds(four, hopeless) for _ in range(_TIMES)) < GROWTH * shorter


def seconds(work: Callable[[], object], hopeless: float) -> float:
    """Infinite where it would take longer than is worth waiting for."""

    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    tracing = sys.gettrace()
    sys.settrace(None)  # what measures coverage takes several times as long as what it measures
    start = thread_time()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, hopeless)
        work()
    except _TooLong:
        return float("inf")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        sys.settrace(tracing)
        signal.signal(signal.SIGVTALRM, before)
    return thread_time() - start
