"""Whether the process can open more files and connections. Some stay in reserve for clients that it serves already."""

from __future__ import annotations

import errno
import os
import resource
import sys
from collections.abc import Callable

USED_UP = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_OPEN_FILES = "/dev/fd"
_MAX_RESERVE = 64


def max_files() -> int:
    """How many the process may have open, at the moment."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


class Descriptors:
    def __init__(self, log: Callable[[str], None]) -> None:
        self.are_short = False
        self._log = log

    def is_reserved(self, number: int) -> bool:
        """Whether a new file has so high a number that only the reserve is left. The lowest one that is free is always taken."""
        if number >= max_files() - _reserve():
            self._note(short=True)
            return True
        return False

    def look(self) -> bool:
        """Count what is open, and say so when it is almost all, or no longer."""
        try:
            left = max_files() - len(os.listdir(_OPEN_FILES))
        except OSError as problem:
            left = 0 if problem.errno in USED_UP else max_files()
        self._note(short=left <= _reserve() * (2 if self.are_short else 1))
        return self.are_short

    def _note(self, *, short: bool) -> None:
        if short and not self.are_short:
            self._log(
                f"Overspill has almost all of the {max_files():,} files open that it may have. Until some are closed, it serves "
                "the clients it has and refuses new ones. To allow more, raise `ulimit -n` before you start it."
            )
        elif self.are_short and not short:
            self._log("Overspill can open enough files again, and lets new clients in.")
        self.are_short = short


def _reserve() -> int:
    return min(_MAX_RESERVE, max_files() // 8)
