"""From agent files to agents: each with its settings, and with the agents it may call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from overspill.agent.file.agent_file import AgentFile, read_agent_file
from overspill.agent.internal import NAMES, PREFIX
from overspill.errors import SettingsError
from overspill.settings import Layer, Settings, merge
from overspill.settings.reading import COMMAND_LINE
from overspill.settings.schema import flatten
from overspill.text import tokens

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


class Sources(Struct, frozen=True):
    """Where the settings of an agent come from besides its own file."""

    command_line: Mapping[str, Any] = {}
    """For the agent that is run."""
    overrides: Mapping[str, Any] = {}
    """For it and for every agent it may call."""
    files: tuple[Layer, ...] = ()


class Agent(Struct, frozen=True):
    name: str
    file: AgentFile
    settings: Settings
    agents: Mapping[str, Agent]
    """By the name of the tool."""
    warnings: tuple[str, ...] = ()

    def everyone(self) -> list[Agent]:
        """This one and all below it."""
        return [self, *(each for agent in self.agents.values() for each in agent.everyone())]


def load_agent(path: Path, sources: Sources = Sources()) -> Agent:  # noqa: B008  # frozen
    """Whoever names no models is asked by those of its caller."""
    return _load(path, sources, [], (), path.parent.resolve())


def _load(path: Path, sources: Sources, callers: list[Path], models: Sequence[str], folder: Path) -> Agent:
    real = path.resolve()
    if real in callers:
        chain = " → ".join(each.name for each in (*callers[callers.index(real) :], real))
        raise SettingsError(f"Agents call each other in a circle: {chain}. Remove one of them from `agents`.")
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
        # Any text is a prompt: without this, somebody else's agent file could have your files sent to a model.
        if not (path.parent / name).resolve().is_relative_to(folder):
            raise SettingsError(
                f"The agent {name} of {file.name} is outside {folder}. Put it into the folder of the agent you run."
            )
        below = _load(path.parent / name, sources, [*callers, real], loaded.settings.models, folder)
        tool = f"{PREFIX}{below.name}"
        if tool in agents or tool in NAMES:
            raise SettingsError(f"The agent {name} of {file.name} would be the tool {tool}, which there is already. Rename it.")
        agents[tool] = below
    return Agent(_name(path), file, _counting(loaded.settings), agents, loaded.warnings)


def _name(path: Path) -> str:
    name = _NOT_IN_NAMES.sub("_", path.stem).strip("_")
    if not name:
        raise SettingsError(f"{path.name} has no name that a tool can have. Rename it, for example to research.ai.")
    return name


def _counting(settings: Settings) -> Settings:
    """Tokens are counted as the agent's own model counts them, where nothing else is said and that is known."""
    if settings.model is not None or not settings.models or not tokens.has_vocabulary(settings.models[0]):
        return settings
    return Settings.of({**dict(flatten(Settings, settings)), ("model",): settings.models[0]})
