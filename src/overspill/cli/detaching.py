"""Do work in a process that can leave the caller: it has no terminal, and once it leaves, none of the caller's streams."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from threading import Thread
from typing import TypeAlias

from overspill.cli import ending
from overspill.errors import OverspillError
from overspill.shell.command import FORWARDED, CommandNotStarted, SignalForwarder

Detachable: TypeAlias = Callable[[], None]
"""Leaves the caller, who then gets exit code 0."""
_LEFT = b"left"


def run_detachable(work: Callable[[Detachable], int]) -> int:
    """Return what `work` returns, or 0 as soon as it leaves. Negative: the signal that ended it."""
    sys.stdout.flush()
    sys.stderr.flush()
    told, telling = os.pipe()
    lifeline, ours = os.pipe()  # closed when we end
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)  # until both are ready for them
    child = os.fork()  # before there are threads
    if not child:
        os.close(told)
        os.close(ours)
        os._exit(_work(work, telling, lifeline))
    with SignalForwarder() as signals:
        signals.forward_to(lambda number: os.kill(child, number))
        os.close(telling)
        os.close(lifeline)
        with open(told, "rb") as pipe:
            message = pipe.read()
        if message == _LEFT:
            return 0
        _, status = os.waitpid(child, 0)
        return int(message) if message else os.waitstatus_to_exitcode(status)


def _work(work: Callable[[Detachable], int], telling: int, lifeline: int) -> int:
    os.setsid()  # what ends or stops the caller's processes together does not reach this one
    has_left = False

    def follow() -> None:
        """End like the caller if that was killed. What guards the command sees that we are gone, and ends the command."""
        os.read(lifeline, 1)
        if not has_left:
            os.kill(os.getpid(), signal.SIGKILL)

    Thread(target=follow, daemon=True).start()

    def leave() -> None:
        nonlocal has_left
        has_left = True
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):  # otherwise a program that reads these streams to their end would wait for us
            os.dup2(null, stream)
        os.write(telling, _LEFT)
        os.close(telling)

    try:
        code = work(leave)
    except (OSError, OverspillError) as problem:
        code = ending.report_failure(problem)
        code = problem.exit_code if isinstance(problem, CommandNotStarted) else code
    if not has_left:
        os.write(telling, str(code).encode())
    return 0
