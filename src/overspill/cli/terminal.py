"""Whether output goes to a terminal, and whether it has colors."""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar

chosen_color: ContextVar[bool | None] = ContextVar("chosen_color", default=None)
"""What --color says, or None. Unlike what click knows, it outlives the command, and its errors are reported after it."""


def on_terminal() -> bool:
    return bool(sys.stdout) and sys.stdout.isatty()


def watched_on_terminal() -> bool:
    """Whether standard error is a terminal, where live displays go."""
    return bool(sys.stderr) and sys.stderr.isatty()


def has_color() -> bool:
    """As --color says, or else NO_COLOR or FORCE_COLOR, or else on a terminal that shows colors."""
    return _choose(on_terminal())


def has_colored_messages() -> bool:
    """The same for standard error."""
    return _choose(watched_on_terminal())


def _choose(is_terminal: bool) -> bool:
    chosen = chosen_color.get()
    if chosen is not None:
        return chosen
    if os.environ.get("NO_COLOR"):
        return False
    if forced := os.environ.get("FORCE_COLOR"):
        return forced != "0"
    return is_terminal and os.environ.get("TERM") != "dumb"
