"""Standard output and standard error: a terminal that somebody looks at, or a file or pipe."""

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


def progress_console() -> Console:
    """For displays on standard error that move. `is_interactive` says whether there is a terminal that can show them: a variable
    such as FORCE_COLOR, which lets Rich take a file for one, does not count here."""
    return Console(stderr=True, force_terminal=bool(sys.stderr) and sys.stderr.isatty())
