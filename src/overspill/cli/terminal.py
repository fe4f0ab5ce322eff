"""Standard output: a terminal that somebody looks at, or a pipe."""

from __future__ import annotations

import sys
from typing import NoReturn

from rich.console import Console

_WIDTH_WHEN_PIPED = 200


def on_terminal() -> bool:
    return bool(sys.stdout) and sys.stdout.isatty()


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Rich would end the program with 1. Here it ends as for everything else that is printed."""
        raise BrokenPipeError


def console() -> Console:
    return _Console(width=None if on_terminal() else _WIDTH_WHEN_PIPED)
