"""The Rich consoles to print with."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console

from overspill.cli.terminal import has_color, on_terminal, watched_on_terminal

_WIDTH_WHEN_PIPED = 200


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Rich would exit with 1. Raise instead, so that every command ends the same way."""
        raise BrokenPipeError


def console() -> Console:
    return _Console(width=None if on_terminal() else _WIDTH_WHEN_PIPED, color_system="auto" if has_color() else None)


def progress_console() -> Console:
    """For live displays on standard error. `is_interactive` is True only on a real terminal: variables such as FORCE_COLOR, which
    make Rich treat a file as one, do not count."""
    return Console(stderr=True, force_terminal=watched_on_terminal())
