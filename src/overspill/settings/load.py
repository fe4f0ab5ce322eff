"""From the command line, frontmatter and files to one `Settings`."""

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
    """Settings, for every key as files spell it the name of the layer its value comes from, and what to tell the user."""

    settings: Settings
    origins: dict[str, str]
    warnings: tuple[str, ...]


def load(
    *,
    cli: Mapping[str, Any] = {},
    frontmatter: Mapping[str, Any] = {},
    config: Path | None = None,
    cwd: Path | None = None,
    user_config_dir: Path | None = None,
    usual: Sequence[Layer] = (),
    forgiving: bool = False,
) -> Loaded:
    """Per key: command line, frontmatter, the file `config` or else those of `cwd` and `user_config_dir`, what is `usual` for the
    program, preset, default. `forgiving`: mistakes in the file of `cwd` are warnings."""
    files = file_layers(config, cwd, user_config_dir, forgiving=forgiving)
    return merge([Layer(COMMAND_LINE, cli), Layer("frontmatter", frontmatter, author="agent"), *files, *usual])


def merge(layers: Sequence[Layer]) -> Loaded:
    """Layers of any origin, strongest first."""
    resolved = resolve(Settings, layers)
    origins = {dotted_path(Settings, path): name for path, name in resolved.origins.items()}
    return Loaded(Settings.of(resolved.values), origins, resolved.warnings)
