"""The settings: do they load, which files do they come from, and who could change those?"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from overspill.cli.doctor.findings import Finding
from overspill.errors import SettingsError
from overspill.settings import Settings
from overspill.settings.files import file_layers
from overspill.settings.load import load


def examine(cli: Mapping[str, Any], config: Path | None, cwd: Path, user_config_dir: Path) -> tuple[list[Finding], Settings]:
    """And the settings that hold, or the defaults where none can be had."""
    try:
        loaded = load(cli=cli, config=config, cwd=cwd, user_config_dir=user_config_dir)
        layers = file_layers(config, cwd, user_config_dir)
    except SettingsError as problem:
        return [Finding("settings", "wrong", str(problem))], Settings()
    found = [Finding("settings", "note", warning) for warning in loaded.warnings]
    for layer in layers:
        if layer.author == "owner":
            found.append(_own(Path(layer.name)))
        else:
            found.append(Finding("settings", "ok", f"{layer.name} of this folder is used, for limits and strategies only."))
    return found or [Finding("settings", "ok", "There is no config file, so the defaults hold.")], loaded.settings


def _own(file: Path) -> Finding:
    for place in (file, file.parent):
        if place.stat().st_mode & stat.S_IWOTH:
            text = f"Everybody may change {place}, and with it where your outputs go."
            return Finding("settings", "wrong", text, f"Close it: chmod o-w {place}")
    return Finding("settings", "ok", f"{file} is used.")
