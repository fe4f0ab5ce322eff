"""`overspill config`: the settings in effect."""

from __future__ import annotations

from typing import Any

import click
from rich.table import Table
from rich.text import Text

from overspill.cli import output
from overspill.cli.settings import load_settings, settings_options
from overspill.cli.tables import console
from overspill.settings import Settings
from overspill.settings.schema import dotted_path, flatten, visible
from overspill.text.lenient_json import dumps


@click.command()
@settings_options
@output.json_options()
def config(as_json: bool, as_lines: bool, **options: Any) -> None:
    """Show the settings in effect and where each comes from.

    Strongest first: the command line; the file you name with --config, or else .overspill.yaml in the working directory and
    config.yaml in your config directory; then the preset and the defaults.
    """
    loaded = load_settings(**options)
    values = {dotted_path(Settings, path): visible(Settings, path, value) for path, value in flatten(Settings, loaded.settings)}
    rows = {key: {"value": value, "from": loaded.origins[key]} for key, value in values.items()}
    if as_lines:
        output.print_records(({"key": key, **row} for key, row in rows.items()), as_lines=True)
    elif as_json:
        output.print_json(rows)
    else:
        table = Table("Key", "Value", "From", box=None, pad_edge=False)
        for key, value in values.items():
            table.add_row(*(Text(cell, overflow="fold") for cell in (key, dumps(value).decode(), loaded.origins[key])))
        console().print(table)
