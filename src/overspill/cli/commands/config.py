"""`overspill config`: the settings in effect."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from overspill.cli.consoles import console
from overspill.cli.settings import load_settings, settings_options
from overspill.settings import Settings
from overspill.settings.schema import dotted_path, flatten, visible
from overspill.text.lenient_json import dumps


@click.command()
@settings_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def config(preset: str | None, config: Path | None, assignments: tuple[str, ...], as_json: bool) -> None:
    """Show the settings in effect and where each comes from.

    Strongest first: the command line; the file you name with --config, or else .overspill.yaml in the working directory and
    config.yaml in your config directory; then the preset and the defaults.
    """
    loaded = load_settings(preset, config, assignments)
    values = {dotted_path(Settings, path): visible(Settings, path, value) for path, value in flatten(Settings, loaded.settings)}
    if as_json:
        rows = {key: {"value": value, "from": loaded.origins[key]} for key, value in values.items()}
        click.echo(dumps(rows, indent=2))
        return
    table = Table("Key", "Value", "From", box=None, pad_edge=False)
    for key, value in values.items():
        table.add_row(*(Text(cell, overflow="fold") for cell in (key, dumps(value).decode(), loaded.origins[key])))
    console().print(table)
