"""The option of commands that serve others: how long they finish what they do before they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def grace_option(default: float) -> Callable[[Any], Any]:
    return click.option(
        "--grace",
        type=click.FloatRange(0),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help="How long calls may take to end after SIGTERM or Ctrl-C.",
    )
