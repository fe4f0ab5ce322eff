"""The files of clients that `wrap`, `unwrap` and `doctor` work on, and what is written into them: all of it or nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import click
from click.shell_completion import CompletionItem
from msgspec import Struct

from overspill.cli.hub_tokens import changed_tokens, find_servers, require_private
from overspill.cli.settings import home
from overspill.cli.terminal import warn
from overspill.errors import OverspillError, SettingsError
from overspill.mcp.host_configs import clients as places
from overspill.mcp.host_configs import files, one_entry, rewriting
from overspill.mcp.host_configs.clients import Client, ConfigDialect, guess_dialect
from overspill.mcp.host_configs.documents import ConfigText
from overspill.mcp.host_configs.files import ClientFile
from overspill.mcp.host_configs.hub_clients import HubAddress
from overspill.mcp.host_configs.own_entries import HookPlace
from overspill.mcp.host_configs.rewriting import RewriteOutcome, Rewriting
from overspill.settings.files import file_exists
from overspill.text.humanize import suggest_nearest

WrapWay: TypeAlias = Literal["each", "grouped", "one"] | HubAddress
"""An entry for each server; the same with one more that offers the retrieval tools, as usual; or one entry for all servers, which
is a command or the address of the hub."""


class ClientFiles(Struct, frozen=True):
    """`given` is what you typed: a client's name or a path. `found` has the contents of the files that exist."""

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

    def real(self, path: Path) -> Path:
        """Return the file that changes: if the path is a link, the file that it leads to."""
        return self.found[path].path if path in self.found else path

    def text(self, path: Path) -> str:
        """Return the file's text; empty if the file does not exist."""
        return self.found[path].text if path in self.found else ""


class HookFiles(ClientFiles, frozen=True):
    """The files of a client, with the file of its hooks, which may be one of them."""

    hooks: Path
    place: HookPlace

    @property
    def launch(self) -> list[str]:
        """The command that starts Overspill in our entries; empty if the file has no such entries."""
        server = self.place.find_server(self.text(self.servers), str(self.servers))
        return server or self.place.find_hook(self.text(self.hooks), str(self.hooks))[:-2]


def clients() -> dict[str, Client]:
    return places.known_clients(home(), sys.platform, os.environ)


def complete_clients(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete names of clients in your shell, or else names of files."""
    names: list[str] = []
    with suppress(SettingsError):
        names = [name for name in clients() if name.startswith(typed)]
    return [CompletionItem(name) for name in names] or [CompletionItem(typed, type="file")]


def find_target(given: str) -> ClientFiles:
    known = clients()
    client = known.get(given)
    path = client.file if client else Path(given)
    if not file_exists(path):
        if client is None:
            hint = suggest_nearest(given, known) or f" The clients you can name are {', '.join(known)}."
            raise SettingsError(f"{given} does not exist.{hint}")
        has_own = bool(client.project_file) and os.path.exists(client.project_file)
        own = f"This folder has its own servers in {Path(client.project_file)}."
        hint = own if has_own else "Add one there first, or name the file that has yours."
        raise SettingsError(f"{client.title} has no servers: {client.file} does not exist. {hint}")
    return ClientFiles(given, client or places.find_owner(path, known), path, {path: files.read(path)})


def find_hook_files(given: str) -> HookFiles | None:
    """Find the files of a client, given its name or a path. None unless Overspill knows the hooks of this client."""
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
    found = {path: files.read(path) for path in dict.fromkeys((servers, hooks)) if os.path.lexists(path)}
    for path, file in found.items():
        if not file.text.strip():
            raise SettingsError(f"{path} is empty. Remove it, or write {{}} into it, and run this again.")
    if not found and not hooks.parent.is_dir():
        missing = f"{hooks} does not exist" if hooks == servers else f"neither {servers} nor {hooks} exists"
        raise SettingsError(f"{client.title} is not installed here: {missing}.")
    return HookFiles(given, client, servers, found, hooks, client.hooks)


def find_installed(*, hooks: bool = False) -> list[ClientFiles]:
    """Find the files of the clients on this machine, and of their hooks. Reports unreadable files on standard error."""
    found: list[ClientFiles] = []
    for name, client in clients().items():
        place = client.hooks.file.parent if hooks and client.hooks else client.file
        try:
            if file_exists(client.file) or file_exists(place):
                found.append((find_hook_files(name) if hooks else None) or find_target(name))
        except OverspillError as problem:
            warn(f"{problem} Skipping it.")
    return found


class FilePlan(Struct, frozen=True):
    """The new text of each file. A file whose text is empty is removed."""

    files: ClientFiles
    servers: Rewriting
    texts: Mapping[Path, str]
    is_undo: bool = False

    @property
    def changed(self) -> list[Path]:
        return [path for path, text in self.texts.items() if text != self.files.text(path)]

    @property
    def changed_servers(self) -> list[RewriteOutcome]:
        return [outcome for outcome in self.servers.outcomes if outcome.change != "none"]


def plan_wrap(at: ClientFiles, launch: Sequence[str], only: Sequence[str] = (), *, way: WrapWay = "grouped") -> FilePlan:
    hooked, name = at if isinstance(at, HookFiles) else None, str(at.servers)
    text, group = at.text(at.servers), (at.client.name if at.client else "mcp") if way == "grouped" else ""
    source = ConfigText(hooked.place.add_server(text, name, launch) if hooked else text, name, at.dialect)
    if isinstance(way, HubAddress):
        if at.client and at.servers.absolute() != at.client.file:
            raise SettingsError(f"{name} belongs to a project, so a token of yours must not be in it. Leave out --hub-http.")
        require_private(at.real(at.servers), at.dialect)
        result = one_entry.wrap(source, way, only, find_servers)
    elif way == "one":
        result = one_entry.wrap(source, launch, only, find_servers)
    else:
        result = rewriting.wrap(source, launch, only, group, keeps_reader=bool(hooked) or _has_hook(at))
    texts = {at.servers: result.text}
    if hooked:
        before = texts.get(hooked.hooks, at.text(hooked.hooks))
        texts[hooked.hooks] = hooked.place.add_hook(before, str(hooked.hooks), launch)
    return FilePlan(at, result, texts)


def plan_unwrap(at: ClientFiles, only: Sequence[str] = ()) -> FilePlan:
    backups = {path: file.read_backups() for path, file in at.found.items()}
    if isinstance(at, HookFiles):
        return _plan_unwrap_hooks(at, backups)
    source, keeps = ConfigText(at.text(at.servers), str(at.servers), at.dialect), bool(only) and _has_hook(at)
    result = one_entry.unwrap(source, backups[at.servers], only, find_servers, keeps_reader=keeps)
    return FilePlan(at, result, {at.servers: result.text}, is_undo=True)


def _has_hook(at: ClientFiles) -> bool:
    """Whether what our hook stores is read with an entry in these files."""
    with suppress(SettingsError):
        if hooked := find_hook_files(at.given):
            return bool(hooked.place.find_hook(hooked.text(hooked.hooks), str(hooked.hooks)))
    return False


def _plan_unwrap_hooks(at: HookFiles, backups: Mapping[Path, Sequence[str]]) -> FilePlan:
    texts = {path: at.text(path) for path in (at.servers, at.hooks)}
    launch = at.launch
    result = Rewriting(texts[at.servers], ())
    if at.place.find_server(texts[at.servers], str(at.servers)):
        source = ConfigText(texts[at.servers], str(at.servers), at.dialect)
        result = one_entry.unwrap(source, backups[at.servers], (), find_servers)
        texts[at.servers] = at.place.remove_server(result.text, str(at.servers))
    texts[at.hooks] = at.place.remove_hook(texts[at.hooks], str(at.hooks), launch)
    named = [outcome.server for outcome in result.outcomes if outcome.change == "unwrapped"]
    for path in at.found:
        # A list may have been empty or missing before, so look for an earlier text that wrapping turns into this one.
        again = partial(_wrap_again, at, path, launch, named, result.group)
        texts[path] = next((old for old in (*backups[path], "") if again(old) == at.text(path)), texts[path])
    return FilePlan(at, result, texts, is_undo=True)


def write(plan: FilePlan) -> dict[Path, Path | None]:
    """Write all files or none. Returns the changed files with their backups, if they have one."""
    copies: dict[Path, Path | None] = {}
    now = datetime.now(UTC)
    for path in plan.changed:
        if path in plan.files.found:
            plan.files.found[path].require_writable()
    at = plan.files
    own = at.client is not None and at.real(at.client.file) == at.real(at.servers)
    with changed_tokens(plan.servers.tokens, at.real(at.servers), starts_at_home=own), ExitStack() as undo:
        for path in plan.changed:
            file, text = plan.files.found.get(path), plan.texts[path]
            if file is None:
                files.create(path, text)
                undo.callback(path.unlink)
                copies[path] = None
            elif not text:
                file.remove()
                undo.callback(files.create, path, file.text)
                copies[path] = None
            else:
                copies[path] = file.restore(text, now) if plan.is_undo else file.replace(text, now)
                undo.callback(_put_back, path, file.text)
        undo.pop_all()
    return copies


def _put_back(path: Path, text: str) -> None:
    files.read(path).restore(text, datetime.now(UTC))


def _wrap_again(at: HookFiles, path: Path, launch: Sequence[str], named: Sequence[str], group: str, old: str) -> str | None:
    with suppress(SettingsError):
        if path == at.servers:
            old = at.place.add_server(old, "", launch)
            source = ConfigText(old, "", at.dialect)
            made = rewriting.wrap(source, launch, named, group, keeps_reader=True) if named else Rewriting(old, ())
            if named and not rewriting.makes(made.text, made):
                return None
            old = made.text
        return at.place.add_hook(old, "", launch) if path == at.hooks else old
    return None
