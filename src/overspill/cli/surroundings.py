"""Where a command runs. A hub runs commands for its fronts, and each has the folder and the variables of its client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import click


class Surroundings(NamedTuple):
    environ: Mapping[str, str]
    folder: Path = Path()
    is_served: bool = False
    """Whether a hub runs the command for a front that was started in this folder."""
    conversation: str = ""
    """The client that the hub runs it for; empty if it is unknown."""


def find_surroundings() -> Surroundings:
    context = click.get_current_context(silent=True)
    return (context and context.find_object(Surroundings)) or Surroundings(os.environ)
