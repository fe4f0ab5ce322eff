"""Merge the command line, config files and what a program usually sets into one `Settings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from overspill.settings.files import file_layers
from overspill.settings.layers import resolve
from overspill.settings.reading import COMMAND_LINE, Layer
from overspill.settings.schema import dotted_path
from overspill.settings.settings import Settings


class Loaded(Struct, frozen=True):
    """The settings, warnings for the user, and `origins`: for each key, spelled as in a file, the layer that set it."""

    settings: Settings
    origins: dict[str, str]
    warnings: tuple[str, ...]


def load(
    *,
    cli: Mapping[str, Any] = {},
    config: Path | None = None,
    cwd: Path | None = None,
    user_config_dir: Path | None = None,
    usual: Sequence[Layer] = (),
    forgiving: bool = False,
) -> Loaded:
    """For each key the first of these wins: the command line; `config`, or without it the files in `cwd` and `user_config_dir`;
    `usual`, what the program prefers; the preset; the default. With `forgiving`, a mistake in the file in `cwd` is a warning."""
    files = file_layers(config, cwd, user_config_dir, forgiving=forgiving)
    return merge([Layer(COMMAND_LINE, cli), *files, *usual])


def merge(layers: Sequence[Layer]) -> Loaded:
    """Merge layers, strongest first."""
    resolved = resolve(Settings, layers)
    origins = {dotted_path(Settings, path): name for path, name in resolved.origins.items()}
    return Loaded(Settings.of(resolved.values), origins, resolved.warnings)
