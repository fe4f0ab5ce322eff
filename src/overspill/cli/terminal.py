"""Standard output: a terminal that somebody looks at, or a pipe."""

from __future__ import annotations

import sys

from rich.console import Console

_WIDTH_WHEN_PIPED = 200


def on_terminal() -> bool:
    return bool(sys.stdout) and sys.stdout.isatty()


def console() -> Console:
    return Console(width=None if on_terminal() else _WIDTH_WHEN_PIPED)
