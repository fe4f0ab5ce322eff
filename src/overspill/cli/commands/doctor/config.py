"""The settings: whether they load, which files they come from, and who can change those files."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from overspill.cli.commands.doctor import Finding
from overspill.errors import SettingsError
from overspill.settings import Settings
from overspill.settings.files import file_layers
from overspill.settings.load import load


def check(cli: Mapping[str, Any], config: Path | None, cwd: Path, user_config_dir: Path) -> tuple[list[Finding], Settings]:
    """The findings, and the settings in effect; the defaults if yours cannot be loaded."""
    try:
        loaded = load(cli=cli, config=config, cwd=cwd, user_config_dir=user_config_dir)
        layers = file_layers(config, cwd, user_config_dir)
    except SettingsError as problem:
        return [Finding("settings", "wrong", str(problem))], Settings()
    findings = [Finding("settings", "note", warning) for warning in loaded.warnings]
    for layer in layers:
        if layer.author == "owner":
            findings.append(_check_file(Path(layer.name)))
        else:
            findings.append(
                Finding("settings", "ok", f"{layer.name} in this folder is used, but only for limits and strategies.")
            )
    return findings or [Finding("settings", "ok", "No config file found; the defaults apply.")], loaded.settings


def _check_file(file: Path) -> Finding:
    for path in (file, file.parent):
        if path.stat().st_mode & stat.S_IWOTH:
            text = f"Any user can change {path}, and with it where your outputs are stored."
            return Finding("settings", "wrong", text, f"To fix it: chmod o-w {path}")
    return Finding("settings", "ok", f"{file} is used.")
