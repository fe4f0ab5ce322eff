"""Whether output goes to a terminal, and whether it has colors."""

from __future__ import annotations

import os
import sys

import click


def on_terminal() -> bool:
    return bool(sys.stdout) and sys.stdout.isatty()


def watched_on_terminal() -> bool:
    """Whether standard error is a terminal, where live displays go."""
    return bool(sys.stderr) and sys.stderr.isatty()


def has_color() -> bool:
    """As --color says, or else on a terminal that shows colors, unless NO_COLOR is set."""
    context = click.get_current_context(silent=True)
    if context is not None and context.color is not None:
        return context.color
    return on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
