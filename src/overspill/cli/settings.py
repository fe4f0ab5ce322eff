"""The settings of a command: its options, the files it reads, your folders, and where models are served."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from overspill.cli.surroundings import find_surroundings
from overspill.cli.terminal import warn
from overspill.errors import SettingsError
from overspill.settings import PRESETS, Layer, Loaded, Settings, load
from overspill.settings.files import parse_yaml
from overspill.text.urls import mask_password

if TYPE_CHECKING:
    from overspill.models.endpoints import Endpoint

Command = TypeVar("Command", bound=Callable[..., Any])
_STORE = "overspill.store"
_STORE_VARIABLE = "OVERSPILL_STORE"


def _note_store(context: click.Context, _: click.Parameter, url: str | None) -> None:
    context.meta[_STORE] = url


store_option = click.option(
    "--store",
    metavar="URL",
    envvar=_STORE_VARIABLE,
    expose_value=False,
    callback=_note_store,
    help="Store outputs at this URL, and read them there. If it contains a password, set OVERSPILL_STORE instead.",
)
"""The option --store. `command_line` adds its value to the settings, so that commands need no parameter for it."""


def settings_options(command: Command) -> Command:
    """Add --preset, --config and --set, which become parameters of `load_settings`, and --store."""
    set_help = "Set one key, e.g. toolOutput.maxChunks=2. Can be repeated."
    command = click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help=set_help)(store_option(command))
    config_help = "Read this config file instead of the usual ones."
    command = click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help=config_help)(command)
    return click.option("--preset", type=click.Choice(list(PRESETS)), help="The preset to start from.")(command)


def load_settings(
    preset: str | None,
    config: Path | None,
    assignments: Sequence[str],
    usual: Sequence[Layer] = (),
    *,
    lasting: str = "",
    forgiving: bool = False,
) -> Loaded:
    """Load the settings of this process and write their warnings to standard error. `lasting`: its outputs outlive it."""
    cli = command_line(preset, assignments)
    usual = [*usual, *([Layer(lasting, {"storeDir": lasting_store()})] if lasting else [])]
    folder = find_surroundings().folder
    config = config and folder / config
    loaded = load(cli=cli, config=config, cwd=folder, user_config_dir=user_config_dir(), usual=usual, forgiving=forgiving)
    for warning in loaded.warnings:
        warn(warning)
    context = click.get_current_context(silent=True)
    if context and context.get_parameter_source("store") is ParameterSource.ENVIRONMENT:
        loaded.origins["store"] = f"environment ({_STORE_VARIABLE})"
    return loaded


def command_line(preset: str | None, assignments: Sequence[str]) -> dict[str, Any]:
    """The layer above all files."""
    context = click.get_current_context(silent=True)
    store = context.meta.get(_STORE) if context else None
    return parse_assignments(assignments, "--set") | ({"preset": preset} if preset else {}) | ({"store": store} if store else {})


def parse_assignments(assignments: Sequence[str], option: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        shown = f"{option} {mask_password(key)}"
        if not equals:
            raise SettingsError(f"{shown} has no value. Write {shown}=VALUE.")
        *sections, last = key.split(".")
        target = values
        for section in sections:
            inner: object = target.setdefault(section, {})
            if not isinstance(inner, dict):
                raise SettingsError(
                    f"{shown} conflicts with another {option}, which sets {section} to a value. Keep one of them."
                )
            target = cast("dict[str, Any]", inner)
        target[last] = parse_yaml(text, shown)
    return values


def user_config_dir() -> Path:
    return _user_dir("XDG_CONFIG_HOME", ".config")


def lasting_store() -> str:
    """Return where the proxy stores outputs, which survive a restart of the machine, unlike in the temporary directory."""
    return str(_user_dir("XDG_STATE_HOME", ".local/state"))


def lists_folder() -> str:
    """Return where the proxy keeps what servers list."""
    return os.path.join(lasting_store(), "lists")


def read_variable(name: str, environ: Mapping[str, str]) -> str:
    if not environ.get(name):
        raise SettingsError(f"The environment variable {name} is not set.")
    return environ[name]


def endpoints(settings: Settings, environ: Mapping[str, str], given: Iterable[str] = ()) -> dict[str, Endpoint]:
    """Return where models are served. `given` are models named on the command line. A mistyped model is an error, not skipped."""
    from overspill.models.endpoints import split_target  # imported late, after the proxy's servers were started
    from overspill.retrieval.extractor import configured_endpoints

    for name, provider in settings.providers.items():
        if provider.api_key_env and not environ.get(provider.api_key_env):
            raise SettingsError(
                f"providers.{name}.apiKeyEnv names {provider.api_key_env}, and that environment variable is not set."
            )
    found = configured_endpoints(settings, environ)
    for target in given:
        split_target(target, found)
    return found


def home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise SettingsError("HOME is not set, and the system does not know your home directory. Set HOME.") from None


def _user_dir(variable: str, default: str) -> Path:
    base = Path(os.environ.get(variable, ""))
    # The XDG specification says to ignore relative paths.
    return (base if base.is_absolute() else home() / default) / "overspill"
