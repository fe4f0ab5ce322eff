"""The client file that a command works on."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem
from msgspec import Struct

from overspill.cli.settings import home
from overspill.cli.stderr import warn
from overspill.errors import OverspillError, SettingsError
from overspill.mcp.host_configs import clients as places
from overspill.mcp.host_configs import files
from overspill.mcp.host_configs.clients import Client
from overspill.mcp.host_configs.dialects import ConfigDialect, guess_dialect
from overspill.mcp.host_configs.files import ClientFile
from overspill.settings.files import file_exists
from overspill.text.humanize import suggest_nearest


class Target(Struct, frozen=True):
    """`given` is what you typed: a client's name or a path."""

    given: str
    file: ClientFile
    client: Client | None

    @property
    def dialect(self) -> ConfigDialect:
        return self.client.dialect if self.client else guess_dialect(self.file.path)


def clients() -> dict[str, Client]:
    return places.known_clients(home(), sys.platform, os.environ)


def complete_clients(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """For your shell: the names of clients, or else files."""
    with suppress(SettingsError):
        if names := [name for name in clients() if name.startswith(typed)]:
            return [CompletionItem(name) for name in names]
    return [CompletionItem(typed, type="file")]


def find_target(given: str) -> Target:
    known = clients()
    client = known.get(given)
    path = client.file if client else Path(given)
    if not file_exists(path):
        raise SettingsError(_describe_missing(client) if client else _describe_unknown(given, known))
    return Target(given, files.read(path), client or places.find_owner(path, known))


def find_installed() -> list[Target]:
    """The files of the clients on this machine. Those that cannot be read are named on standard error."""
    found: list[Target] = []
    for name, client in clients().items():
        try:
            if file_exists(client.file):
                found.append(find_target(name))
        except OverspillError as problem:
            warn(f"{problem} Skipping it.")
    return found


def _describe_missing(client: Client) -> str:
    project = Path(client.project_file)
    has_own = bool(client.project_file) and os.path.exists(project)
    hint = (
        f"This folder has its own servers in {project}." if has_own else "Add one there first, or name the file that has yours."
    )
    return f"{client.title} has no servers: {client.file} does not exist. {hint}"


def _describe_unknown(given: str, known: dict[str, Client]) -> str:
    hint = suggest_nearest(given, known) or f" The clients you can name are {', '.join(known)}."
    return f"{given} does not exist.{hint}"
