"""An agent file: an optional `#!` line, YAML frontmatter between `---` lines, and the system prompt below it."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, ValidationError, convert

from overspill.agent.file.keys import ALLOWED, FileKeys, OutputKeys
from overspill.errors import SettingsError
from overspill.models.scripted import PROVIDER as SCRIPTED
from overspill.settings import Settings
from overspill.settings.files import parse_yaml, read_text
from overspill.settings.schema import by_spelling

_FENCE = "---"


class AgentFile(Struct, frozen=True):
    path: Path
    keys: FileKeys
    settings: Mapping[str, Any]
    """The other keys of the frontmatter, which are those of `Settings`. Not checked yet."""
    prompt: str

    @property
    def name(self) -> str:
        return self.path.name


def read_agent_file(path: Path) -> AgentFile:
    frontmatter, prompt = _split(read_text(path, str(path)), path.name)
    if not prompt:
        raise SettingsError(f"{path.name} has no prompt. Write what the agent should do below the frontmatter.")
    own, shared = by_spelling(FileKeys), by_spelling(Settings)
    settings: dict[str, Any] = {}
    given: dict[str, Any] = {}
    for key, value in frontmatter.items():
        if key in own:
            given[key] = _check(key, value, path.name)
        elif key not in shared and (near := get_close_matches(key, [*own, *shared], n=1)) and near[0] in own:
            raise SettingsError(f"Unknown key {key!r} in {path.name}. Did you mean {near[0]!r}?")
        else:
            settings[key] = _resolve_beside(key, value, path.parent)
    return AgentFile(path, FileKeys(**given), settings, prompt)


def _split(text: str, name: str) -> tuple[dict[str, Any], str]:
    lines = text.splitlines()
    if lines and lines[0].startswith("#!"):
        del lines[0]
    while lines and not lines[0].strip():
        del lines[0]
    if not lines or lines[0].rstrip() != _FENCE:
        return {}, "\n".join(lines).strip()
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise SettingsError(f"The frontmatter of {name} is not closed. Add a line {_FENCE} below its keys.")
    # Empty lines replace what is above, so that errors have the line number of the file.
    above = len(text.splitlines()) - len(lines) + 1
    parsed = parse_yaml("\n" * above + "\n".join(lines[1:end]), f"The frontmatter of {name}")
    if parsed is not None and not isinstance(parsed, dict):
        raise SettingsError(f"The frontmatter of {name} is not a mapping. Write one `key: value` per line.")
    return cast("dict[str, Any]", parsed or {}), "\n".join(lines[end + 1 :]).strip()


def _check(key: str, value: object, name: str) -> object:
    if isinstance(value, str) and key in ("tools", "agents"):
        value = [value]
    try:
        checked = convert(value, by_spelling(FileKeys)[key].type)
    except ValidationError:
        raise SettingsError(f"{key} in {name} must be {ALLOWED[key]}.") from None
    if isinstance(checked, OutputKeys) and checked.json_schema is not None and checked.format != "json":
        raise SettingsError(f"output.schema in {name} needs the format json, but the format is {checked.format}.")
    return checked


def _resolve_beside(key: str, value: object, folder: Path) -> object:
    """A path of a script is relative to the agent file, not to the working directory."""
    match by_spelling(Settings)[key].name if key in by_spelling(Settings) else "":
        case "models" if isinstance(value, list):
            return [_resolve_script(model, folder) for model in cast("list[object]", value)]
        case "models" | "extraction_model":
            return _resolve_script(value, folder)
        case "tool_output" if isinstance(value, dict):
            section = cast("dict[str, object]", value)
            return section | {"models": _resolve_beside("models", section["models"], folder)} if "models" in section else section
        case _:
            return value


def _resolve_script(model: object, folder: Path) -> object:
    prefix = f"{SCRIPTED}/"
    if not isinstance(model, str) or not model.startswith(prefix):
        return model
    return f"{prefix}{folder / model.removeprefix(prefix)}"
