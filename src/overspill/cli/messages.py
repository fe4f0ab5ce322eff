"""Words to whoever called a command, beside what it gives."""

from __future__ import annotations

import click

from overspill.text.humanize import visible


def say(text: str) -> None:
    click.echo(f"overspill: {visible(text)}", err=True)
