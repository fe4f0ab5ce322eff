"""`overspill config`, and the options by which every command takes its settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from rich.table import Table
from rich.text import Text

from overspill.cli.messages import say
from overspill.cli.terminal import console
from overspill.errors import SettingsError
from overspill.settings import PRESETS, Layer, Loaded, Settings, load
from overspill.settings.files import file_layers, parse_yaml
from overspill.settings.schema import dotted_path, flatten, visible
from overspill.text.lenient_json import dumps

Command = TypeVar("Command", bound=Callable[..., Any])
_NO_HOME = "HOME is not set, and the system has no entry for your user. Set HOME to a folder of yours."


def settings_options(command: Command) -> Command:
    """--preset, --config and --set, as the parameters of `load_settings`."""
    for option in (
        click.option(
            "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Set one key, e.g. toolOutput.maxChunks=2."
        ),
        click.option(
            "--config", type=click.Path(path_type=Path), metavar="FILE", help="Read this file instead of the usual ones."
        ),
        click.option("--preset", type=click.Choice(list(PRESETS)), help="The values to start from."),
    ):
        command = option(command)
    return command


def load_settings(
    preset: str | None,
    config: Path | None,
    assignments: Sequence[str],
    usual: Sequence[Layer] = (),
    *,
    forgiving: bool = False,
) -> Loaded:
    """The settings of this process; what the user should know about them goes to standard error."""
    cli = command_line(preset, assignments)
    loaded = load(cli=cli, config=config, cwd=Path(), user_config_dir=user_config_dir(), usual=usual, forgiving=forgiving)
    for warning in loaded.warnings:
        say(warning)
    return loaded


@click.command()
@settings_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def config(preset: str | None, config: Path | None, assignments: tuple[str, ...], as_json: bool) -> None:
    """Show the settings in effect and where each comes from.

    Stronger first: the command line, frontmatter, a file given with --config, or else .overspill.yaml in the working directory
    and config.yaml in your config directory; then the preset and the defaults.
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


def config_files(config: Path | None) -> list[Layer]:
    """The files `load_settings` reads."""
    return file_layers(config, Path(), user_config_dir())


def command_line(preset: str | None, assignments: Sequence[str]) -> dict[str, Any]:
    """The layer above all files."""
    return parse_assignments(assignments, "--set") | ({"preset": preset} if preset else {})


def parse_assignments(assignments: Sequence[str], option: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise SettingsError(f"{option} {assignment} has no value. Write {option} {assignment}=VALUE.")
        *sections, last = key.split(".")
        place = values
        for section in sections:
            below: object = place.setdefault(section, {})
            if not isinstance(below, dict):
                raise SettingsError(f"{option} {key} is below {section}, which another {option} gives a value. Keep one.")
            place = cast("dict[str, Any]", below)
        place[last] = parse_yaml(text, f"{option} {key}")
    return values


def user_config_dir() -> Path:
    return _of_user("XDG_CONFIG_HOME", ".config")


def lasting_store() -> str:
    """Where outputs are kept that have to outlast a restart of the machine, which empties the temporary directory."""
    return str(_of_user("XDG_STATE_HOME", ".local/state"))


def home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise SettingsError(_NO_HOME) from None


def _of_user(variable: str, usual: str) -> Path:
    base = Path(os.environ.get(variable, ""))
    # The XDG specification has relative paths ignored.
    return (base if base.is_absolute() else home() / usual) / "overspill"
