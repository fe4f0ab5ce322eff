"""Loads agents from files: each with its settings and the agents it can call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from overspill.agent.file.agent_file import AgentFile, read_agent_file
from overspill.agent.internal import NAMES, PREFIX
from overspill.errors import SettingsError
from overspill.settings import Layer, Loaded, Settings, merge
from overspill.settings.reading import COMMAND_LINE
from overspill.settings.schema import flatten
from overspill.text import tokens

_INVALID_CHARS = re.compile(r"[^A-Za-z0-9_-]+")


class Sources(Struct, frozen=True):
    """Where an agent's settings come from, besides its own file."""

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
    """An agent that names no models uses those of its caller."""
    return _load(path, sources, [], (), path.parent.resolve())


def _load(path: Path, sources: Sources, callers: list[Path], models: Sequence[str], folder: Path) -> Agent:
    real = path.resolve()
    if real in callers:
        chain = " → ".join(each.name for each in (*callers[callers.index(real) :], real))
        raise SettingsError(f"These agents call each other in a circle: {chain}. Remove one of them from `agents`.")
    file = read_agent_file(path)
    layers = [
        Layer(COMMAND_LINE, {} if callers else sources.command_line),
        Layer(COMMAND_LINE, sources.overrides),
        Layer(file.name, file.settings, author="agent"),
        *sources.files,
        Layer("its caller", {"models": list(models)}),
    ]
    loaded = merge(layers)
    agents: dict[str, Agent] = {}
    for name in file.keys.agents:
        # Any text file is a valid prompt, so an agent file from elsewhere could otherwise send your files to a model.
        if not (path.parent / name).resolve().is_relative_to(folder):
            raise SettingsError(
                f"{file.name} names the agent {name}, which is outside {folder}. Move it into the folder of the agent you run."
            )
        below = _load(path.parent / name, sources, [*callers, real], loaded.settings.models, folder)
        tool = f"{PREFIX}{below.name}"
        if tool in agents or tool in NAMES:
            raise SettingsError(f"{file.name} names the agent {name}, but there already is a tool {tool}. Rename the file.")
        agents[tool] = below
    return Agent(_tool_name(path), file, _complete_settings(loaded), agents, loaded.warnings)


def _tool_name(path: Path) -> str:
    name = _INVALID_CHARS.sub("_", path.stem).strip("_")
    if not name:
        raise SettingsError(f"{path.name} cannot be a tool name. Rename the file, for example to research.ai.")
    return name


def _complete_settings(loaded: Loaded) -> Settings:
    """Unless a setting or a preset says otherwise, ask the model what it is looking for, and count tokens as it does, if its
    vocabulary is known."""
    settings = loaded.settings
    values = dict(flatten(Settings, settings))
    if loaded.origins["intent"] == "default":
        values["intent",] = "ask"
    if settings.model is None and settings.models and tokens.has_vocabulary(settings.models[0]):
        values["model",] = settings.models[0]
    return Settings.of(values)
