"""How a command ends: its output is written, or you learn that it could not be."""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from overspill.cli.terminal import report_error
from overspill.errors import OverspillError

# What a shell reports when a program writes to a pipe that nothing reads. Windows has no such signal.
READER_GONE = 128 + getattr(signal, "SIGPIPE", 13)
TERMINATED = 128 + signal.SIGTERM


def report_failure(problem: OSError | OverspillError) -> int:
    """Write one line to standard error and return the exit code. A reader that goes away, as `head` does, is not a mistake."""
    if isinstance(problem, BrokenPipeError):
        return READER_GONE
    message = str(problem)
    if isinstance(problem, OSError):  # one that no command expects, such as a full disk under standard output
        message = f"{problem.filename or 'Reading or writing'} failed: {problem.strerror or problem}."
        try:
            os.getcwd()
        except FileNotFoundError:
            message = "The working directory no longer exists. Change to another one and try again."
    with suppress(OSError):  # standard error may be on the same full disk
        report_error(message)
    return 2


class ClosedOutput(io.TextIOBase):
    """A standard output that the caller has closed. Python has None there, and would lose what is printed without a word."""

    @property
    def buffer(self) -> ClosedOutput:
        return self

    def write(self, _: object, /) -> NoReturn:
        raise OverspillError("Standard output is closed, so the output is lost. Send it to a file, or to /dev/null.")


def require_output() -> None:
    """Raise OverspillError if standard output is closed."""
    if isinstance(sys.stdout, ClosedOutput):
        sys.stdout.write("")


def hold_closed_streams() -> None:
    """Keep the numbers of closed standard streams taken: a file that is opened later must not pass for one of them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # None when the parent process closed it
        sys.stdout = ClosedOutput()


def drop_unwritten() -> None:
    """Python would try again at shutdown, fail again, print a traceback and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # pyright: ignore[reportUnnecessaryComparison]
            continue
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):  # a caller may have put a stream without a file descriptor here
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)
