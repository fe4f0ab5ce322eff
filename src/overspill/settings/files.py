"""Find and read config files. Their authors may be hostile, so reading is strict."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from overspill.errors import SettingsError
from overspill.settings.keys import Author
from overspill.settings.reading import Layer
from overspill.text.lines import line_number

WORKING_DIRECTORY_NAMES = (".overspill.yaml", ".overspill.yml", ".overspill.json")
USER_NAMES = ("config.yaml", "config.yml", "config.json")
_MAX_BYTES = 1_048_576
_MAX_DEPTH = 20
_MAX_NODES = 10_000


def file_layers(config: Path | None, cwd: Path | None, user_config_dir: Path | None, *, forgiving: bool = False) -> list[Layer]:
    """The file `config`, or without it the working directory's file, then the user's own. Strongest first.

    With `forgiving`, a mistake in the working directory's file is a warning.
    """
    if config is not None:
        return [_layer(config, str(config))]
    layers: list[Layer] = []
    try:
        if cwd is not None and (found := _only(cwd, WORKING_DIRECTORY_NAMES)):
            layers.append(_layer(found, found.name, "anyone", forgiving=forgiving))
    except SettingsError as problem:
        if not forgiving:
            raise
        layers.append(Layer("the working directory", {}, "anyone", forgiving, (f"Ignored: {problem}",)))
    if user_config_dir is not None and (found := _only(user_config_dir, USER_NAMES)):
        layers.append(_layer(found, str(found)))
    return layers


def parse_yaml(text: str, name: str) -> Any:
    """YAML without its dangers and surprises: no aliases, tags or duplicate keys, and only true and false are booleans."""
    from overspill.settings import strict_yaml  # noqa: PLC0415  # YAML takes long to import

    return strict_yaml.parse(text, name, max_depth=_MAX_DEPTH, max_nodes=_MAX_NODES)


def _only(directory: Path, names: Sequence[str]) -> Path | None:
    found = [directory / name for name in names if file_exists(directory / name)]
    if len(found) > 1:
        raise SettingsError(f"{found[0].name} and {found[1].name} are both in {directory.absolute()}. Keep one.")
    return found[0] if found else None


def _layer(path: Path, name: str, author: Author = "owner", *, forgiving: bool = False) -> Layer:
    text = read_text(path, name, follow_link=author == "owner")
    parsed = _parse_json(text, name) if path.suffix == ".json" else parse_yaml(text, name)
    if parsed is None:
        return Layer(name, {}, author, forgiving)
    if not isinstance(parsed, dict):
        raise SettingsError(f"{name} has no keys. A config file is a mapping from keys to values.")
    values = _with_truncation_on_top(cast("dict[str, Any]", parsed), name)
    return Layer(name, _with_functions_from(path.parent, values), author, forgiving)


def file_exists(path: Path) -> bool:
    """Whether the file exists, even as a broken link. Raises SettingsError if the folder cannot be searched."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as problem:
        raise SettingsError(f"{path} cannot be read: {problem.strerror}.") from None
    return True


def read_text(
    path: Path,
    name: str,
    *,
    follow_link: bool = True,
    may_be_pipe: bool = False,
    max_bytes: int = _MAX_BYTES,
    too_large: str = "is larger than the limit of {most} bytes.",
    encoding: str = "utf-8-sig",
) -> str:
    """Read a small UTF-8 file: a regular file, or a pipe if `may_be_pipe`."""
    try:
        # Check before opening, because opening a pipe would wait for its writer.
        if not may_be_pipe and not stat.S_ISREG(path.stat(follow_symlinks=follow_link).st_mode):
            raise SettingsError(f"{name} is not a regular file.")
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as problem:
        raise SettingsError(f"{name} cannot be read: {problem.strerror}.") from None
    if len(data) > max_bytes:
        raise SettingsError(f"{name} {too_large.format(most=max_bytes)}")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as problem:
        raise SettingsError(f"{name} is not UTF-8, line {line_number(data, problem.start)}. Save it as UTF-8.") from None


def _with_truncation_on_top(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The settings with the section `tools.truncation`, where the manual for truncation has it, moved to the top."""
    if "tools" not in values:
        return values
    tools, rest = values["tools"], {key: value for key, value in values.items() if key != "tools"}
    if not isinstance(tools, dict) or set(cast("dict[object, object]", tools)) != {"truncation"}:
        raise SettingsError(f"tools in {name} may contain only the section truncation.")
    if "truncation" in rest:
        raise SettingsError(f"truncation and tools.truncation are the same key, both in {name}. Keep one.")
    return {**rest, "truncation": tools["truncation"]}


def _with_functions_from(folder: Path, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings with `file.py:function` made relative to the config file, wherever the program runs."""
    if not isinstance(values.get("functions"), dict):
        return values
    functions = dict(cast("dict[str, object]", values["functions"]))
    for name, reference in functions.items():
        file, colon, function = reference.rpartition(":") if isinstance(reference, str) else ("", "", "")
        if colon and file.endswith(".py"):
            functions[name] = f"{folder / os.path.expanduser(file)}:{function}"
    return {**values, "functions": functions}


def _parse_json(text: str, name: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        for key, value in pairs:
            if key in entries:
                raise SettingsError(f"{name} has the key {key!r} twice. Keep one.")
            entries[key] = value
        return entries

    try:
        parsed = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as problem:
        raise SettingsError(f"{name} is not usable JSON, line {line_number(text, problem.pos)}: {problem.msg}.") from None
    except RecursionError:
        raise SettingsError(f"{name} is nested too deeply.") from None
    except ValueError:
        raise SettingsError(f"{name} has a number that is too long.") from None
    if _count_nodes(parsed, name) > _MAX_NODES:
        raise SettingsError(f"{name} has more than {_MAX_NODES} values.")
    return parsed


def _count_nodes(value: object, name: str, depth: int = 0) -> int:
    """Count keys and values as YAML does. Raises SettingsError below the depth that YAML may have too."""
    if depth == _MAX_DEPTH:
        raise SettingsError(f"{name} is nested too deeply.")
    below = cast("list[object]", value) if isinstance(value, list) else []
    if isinstance(value, dict):
        below = [each for pair in cast("dict[str, object]", value).items() for each in pair]
    return 1 + sum(_count_nodes(each, name, depth + 1) for each in below)
