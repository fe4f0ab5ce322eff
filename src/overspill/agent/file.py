"""Agents from files: an optional `#!` line, YAML frontmatter between `---` lines, and the system prompt below it.

Each is loaded with its settings and the agents it can call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

from msgspec import Struct, ValidationError, convert

from overspill.agent.internal import NAMES, PREFIX
from overspill.errors import SettingsError
from overspill.models.scripted import PROVIDER as SCRIPTED
from overspill.settings import Layer, Loaded, Settings, merge
from overspill.settings.files import parse_yaml, read_text
from overspill.settings.keys import Key, Name
from overspill.settings.reading import COMMAND_LINE
from overspill.settings.schema import by_spelling, flatten
from overspill.text import tokens
from overspill.text.lenient_json import ready
from overspill.text.regex import regex

ReportFormat: TypeAlias = Literal["text", "markdown", "json"]


class OutputKeys(Struct, frozen=True, forbid_unknown_fields=True, rename={"json_schema": "schema"}):
    """The form of the final report."""

    format: ReportFormat = "markdown"
    json_schema: Mapping[str, Any] | None = None


class FileKeys(Struct, frozen=True, kw_only=True):
    """The keys that only an agent file has. Every other key of its frontmatter is one of `Settings`."""

    description: Annotated[Name | None, Key("What the agent does. Agents that can call it see this.", "agent")] = None
    tools: Annotated[
        tuple[Name | Mapping[str, tuple[Name, ...]], ...],
        Key(
            "The tools it can use: names from `mcpServers` and `functions`; `server: [tool, tool]` for some tools of a server.",
            "agent",
        ),
    ] = ()
    agents: Annotated[
        tuple[Name, ...],
        Key("The agent files it can call as tools, relative to its folder and inside the folder of the agent you run.", "agent"),
    ] = ()
    output: Annotated[OutputKeys, Key("The form of its report: `format` and, for the format json, a JSON `schema`.", "agent")] = (
        OutputKeys()
    )


ALLOWED = {
    "description": "a string that is not empty",
    "tools": "a list of names, or of `server: [tool, tool]`",
    "agents": "a list of agent files",
    "output": "a mapping with format (text, markdown or json) and schema",
}

_FENCE = "---"
_INVALID_CHARS = regex(r"[^A-Za-z0-9_-]+")


class AgentFile(Struct, frozen=True):
    path: Path
    keys: FileKeys
    settings: Mapping[str, Any]
    """The other keys of the frontmatter, which belong to `Settings` and are not checked yet."""
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
    # Put empty lines in place of what is above, so that line numbers in errors are those of the file.
    above = len(text.splitlines()) - len(lines) + 1
    parsed = parse_yaml("\n" * above + "\n".join(lines[1:end]), f"The frontmatter of {name}")
    if parsed is not None and not isinstance(parsed, dict):
        raise SettingsError(f"The frontmatter of {name} is not a mapping. Write one `key: value` per line.")
    return cast("dict[str, Any]", parsed or {}), "\n".join(lines[end + 1 :]).strip()


def _check(key: str, value: object, name: str) -> object:
    if isinstance(value, str) and key in ("tools", "agents"):
        value = [value]
    try:
        checked = convert(value, ready(by_spelling(FileKeys)[key].type))
    except ValidationError:
        raise SettingsError(f"{key} in {name} must be {ALLOWED[key]}.") from None
    if isinstance(checked, OutputKeys) and checked.json_schema is not None and checked.format != "json":
        raise SettingsError(f"output.schema in {name} needs the format json, but the format is {checked.format}.")
    return checked


def _resolve_beside(key: str, value: object, folder: Path) -> object:
    """Resolve the path of a script, which is relative to the agent file, not to the working directory."""
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


class Sources(Struct, frozen=True):
    """Where an agent's settings come from, in addition to its own file."""

    command_line: Mapping[str, Any] = {}
    """Applies to the agent you run."""
    overrides: Mapping[str, Any] = {}
    """Applies to the agent you run and to every agent it can call."""
    files: tuple[Layer, ...] = ()


class Agent(Struct, frozen=True):
    name: str
    file: AgentFile
    settings: Settings
    agents: Mapping[str, Agent]
    """The agents it can call, by tool name."""
    warnings: tuple[str, ...] = ()

    def everyone(self) -> list[Agent]:
        """This agent and all agents below it."""
        return [self, *(each for agent in self.agents.values() for each in agent.everyone())]


def load_agent(path: Path, sources: Sources = Sources()) -> Agent:  # noqa: B008  # frozen
    """Load an agent and those it can call. An agent that names no models uses the models of its caller."""
    return _load(path, sources, [], (), path.parent.resolve())


def _load(path: Path, sources: Sources, callers: list[Path], models: Sequence[str], folder: Path) -> Agent:
    real = path.resolve()
    if real in callers:
        chain = " → ".join(each.name for each in (*callers[callers.index(real) :], real))
        raise SettingsError(f"These agents call each other in a circle: {chain}. Remove one of them from `agents`.")
    file = read_agent_file(path)
    loaded = merge(
        [
            Layer(COMMAND_LINE, {} if callers else sources.command_line),
            Layer(COMMAND_LINE, sources.overrides),
            Layer(file.name, file.settings, author="agent"),
            *sources.files,
            Layer("its caller", {"models": list(models)}),
        ]
    )
    agents: dict[str, Agent] = {}
    for name in file.keys.agents:
        # Any text file is a valid prompt, so without this check, an agent file could send your files to a model.
        if not (path.parent / name).resolve().is_relative_to(folder):
            raise SettingsError(
                f"{file.name} names the agent {name}, which is outside {folder}. Move it into the folder of the agent you run."
            )
        below = _load(path.parent / name, sources, [*callers, real], loaded.settings.models, folder)
        tool = f"{PREFIX}{below.name}"
        if tool in agents or tool in NAMES:
            raise SettingsError(f"{file.name} names the agent {name}, but there already is a tool {tool}. Rename the file.")
        agents[tool] = below
    own_name = _INVALID_CHARS.sub("_", path.stem).strip("_")
    if not own_name:
        raise SettingsError(f"{path.name} cannot be a tool name. Rename the file, for example to research.ai.")
    return Agent(own_name, file, _complete_settings(loaded), agents, loaded.warnings)


def _complete_settings(loaded: Loaded) -> Settings:
    """Unless settings differ, make the model say what it is looking for, and count tokens with its vocabulary if known."""
    settings = loaded.settings
    values = dict(flatten(Settings, settings))
    if loaded.origins["intent"] == "default":
        values["intent",] = "ask"
    if settings.model is None and settings.models and tokens.has_vocabulary(settings.models[0]):
        values["model",] = settings.models[0]
    return Settings.of(values)
