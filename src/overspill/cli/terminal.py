"""Whether output goes to a terminal."""

from __future__ import annotations

import sys


def on_terminal() -> bool:
    return bool(sys.stdout) and sys.stdout.isatty()


def watched_on_terminal() -> bool:
    """Whether standard error is a terminal, where live displays go."""
    return bool(sys.stderr) and sys.stderr.isatty()
