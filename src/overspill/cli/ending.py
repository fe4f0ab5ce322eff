"""How a command ends when its work is done: everything it said is written, or the user learns that it could not be."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TextIO

from overspill.cli.messages import say
from overspill.errors import OverspillError

# What a shell reports of a program that was ended by writing into a pipe nobody reads. On Windows there is no such signal.
READER_GONE = 128 + getattr(signal, "SIGPIPE", 13)


def report_failure(problem: OSError | OverspillError) -> int:
    """The exit code, after one line on standard error. A reader that went away, as `head` does, is no mistake of anybody's."""
    if isinstance(problem, BrokenPipeError):
        return READER_GONE
    with suppress(OSError):  # standard error may be on the same full disk
        say(_describe(problem) if isinstance(problem, OSError) else str(problem))
    return 2


def flush() -> None:
    if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]  # closed by whoever started us
        sys.stdout.flush()


def drop_unwritten() -> None:
    """Python would try again while it shuts down, and answer a second failure with a traceback and an exit code of its own."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # pyright: ignore[reportUnnecessaryComparison]
            _drop_unwritten(stream)


def _drop_unwritten(stream: TextIO) -> None:
    try:
        stream.flush()
    except OSError:
        with suppress(OSError):  # not a file of the system's, but of whoever calls us
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _describe(problem: OSError) -> str:
    """What no command expects, such as a full disk below standard output."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return "The folder you are in has been removed. Go to another one and run this again."
    return f"{problem.filename or 'Reading or writing'} failed: {problem.strerror or problem}."
