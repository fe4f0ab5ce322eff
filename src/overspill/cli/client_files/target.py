"""The files of a client that a command works on."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
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
from overspill.mcp.host_configs.clients import Client, ConfigDialect, guess_dialect
from overspill.mcp.host_configs.files import ClientFile
from overspill.mcp.host_configs.own_entries import HookPlace
from overspill.settings.files import file_exists
from overspill.text.humanize import suggest_nearest


class ClientFiles(Struct, frozen=True):
    """`given` is what you typed: a client's name or a path. `found` has those of the files that exist."""

    given: str
    client: Client | None
    servers: Path
    found: Mapping[Path, ClientFile]

    @property
    def title(self) -> str:
        return self.client.title if self.client else self.given

    @property
    def dialect(self) -> ConfigDialect:
        return self.client.dialect if self.client else guess_dialect(self.found[self.servers].path)

    def text(self, path: Path) -> str:
        """Empty if the file does not exist."""
        return self.found[path].text if path in self.found else ""


class HookFiles(ClientFiles, frozen=True):
    """Also the file of a client's hooks, which may be the same."""

    hooks: Path
    place: HookPlace

    @property
    def launch(self) -> list[str]:
        """The command that starts Overspill in our entries; empty if there are none."""
        server = self.place.find_server(self.text(self.servers), str(self.servers))
        return server or self.place.find_hook(self.text(self.hooks), str(self.hooks))[:-2]


def clients() -> dict[str, Client]:
    return places.known_clients(home(), sys.platform, os.environ)


def complete_clients(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """For your shell: the names of clients, or else files."""
    with suppress(SettingsError):
        if names := [name for name in clients() if name.startswith(typed)]:
            return [CompletionItem(name) for name in names]
    return [CompletionItem(typed, type="file")]


def find_target(given: str) -> ClientFiles:
    known = clients()
    client = known.get(given)
    path = client.file if client else Path(given)
    if not file_exists(path):
        raise SettingsError(_describe_missing(client) if client else _describe_unknown(given, known))
    return ClientFiles(given, client or places.find_owner(path, known), path, {path: files.read(path)})


def find_hook_files(given: str) -> HookFiles | None:
    """None if this is no client, or no file of one, whose hooks Overspill knows."""
    known = clients()
    client = known.get(given) or places.find_owner(Path(given), known)
    if client is None or client.hooks is None:
        return None
    is_own = given == client.name or Path(given).absolute() == client.file
    servers = client.file if is_own else Path(given)
    project = Path(os.path.normpath(servers.absolute().as_posix().removesuffix(client.project_file)))
    hooks = client.hooks.file if is_own else project / client.hooks.project_file
    if hooks == servers.absolute():
        hooks = servers
    found = {path: _read(path) for path in dict.fromkeys((servers, hooks)) if os.path.lexists(path)}
    if not found and not hooks.parent.is_dir():
        missing = f"{hooks} does not exist" if hooks == servers else f"neither {servers} nor {hooks} exists"
        raise SettingsError(f"{client.title} is not installed here: {missing}.")
    return HookFiles(given, client, servers, found, hooks, client.hooks)


def _read(path: Path) -> ClientFile:
    file = files.read(path)
    if not file.text.strip():
        raise SettingsError(f"{path} is empty. Remove it, or write {{}} into it, and run this again.")
    return file


def find_installed() -> list[ClientFiles]:
    """The files of the clients on this machine. Those that cannot be read are named on standard error."""
    found: list[ClientFiles] = []
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
