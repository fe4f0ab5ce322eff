"""The files that `overspill wrap --hooks` changes: that of a client's servers and that of its hooks, which may be the same."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from overspill.cli.client_files.target import clients
from overspill.errors import SettingsError
from overspill.mcp.host_configs import files, rewriting
from overspill.mcp.host_configs.clients import Client, find_owner
from overspill.mcp.host_configs.files import ClientFile
from overspill.mcp.host_configs.own_entries import HookPlace
from overspill.mcp.host_configs.rewriting import Rewriting


class HookFiles(Struct, frozen=True):
    """`found` has those of the two files that exist."""

    given: str
    client: Client
    place: HookPlace
    servers: Path
    hooks: Path
    found: Mapping[Path, ClientFile]

    def text(self, path: Path) -> str:
        """Empty if the file does not exist."""
        return self.found[path].text if path in self.found else ""

    @property
    def launch(self) -> list[str]:
        """The command that starts Overspill in our entries; empty if there are none."""
        server = self.place.find_server(self.text(self.servers), str(self.servers))
        return server or self.place.find_hook(self.text(self.hooks), str(self.hooks))[:-2]


class HookPlan(Struct, frozen=True):
    """The new text of each file. A file whose text is empty is removed."""

    files: HookFiles
    servers: Rewriting
    texts: Mapping[Path, str]

    @property
    def changed(self) -> list[Path]:
        return [path for path, text in self.texts.items() if text != self.files.text(path)]


def find_hook_files(given: str) -> HookFiles | None:
    """None if this is no client, or no file of one, whose hooks Overspill knows."""
    known = clients()
    client = known.get(given) or find_owner(Path(given), known)
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
    return HookFiles(given, client, client.hooks, servers, hooks, found)


def plan_wrap(at: HookFiles, launch: Sequence[str], only: Sequence[str]) -> HookPlan:
    texts = {path: at.text(path) for path in (at.servers, at.hooks)}
    texts[at.servers] = at.place.add_server(texts[at.servers], str(at.servers), launch)
    result = rewriting.wrap(texts[at.servers], str(at.servers), launch, only, at.client.dialect)
    texts[at.servers] = result.text
    texts[at.hooks] = at.place.add_hook(texts[at.hooks], str(at.hooks), launch)
    return HookPlan(at, result, texts)


def plan_unwrap(at: HookFiles) -> HookPlan:
    texts = {path: at.text(path) for path in (at.servers, at.hooks)}
    backups = {path: file.read_backups() for path, file in at.found.items()}
    launch = at.launch
    result = Rewriting(texts[at.servers], ())
    if at.place.find_server(texts[at.servers], str(at.servers)):
        result = rewriting.unwrap(texts[at.servers], str(at.servers), backups[at.servers], (), at.client.dialect)
        texts[at.servers] = at.place.remove_server(result.text, str(at.servers))
    texts[at.hooks] = at.place.remove_hook(texts[at.hooks], str(at.hooks), launch)
    named = [outcome.server for outcome in result.outcomes if outcome.change == "unwrapped"]
    for path in at.found:
        # What was an empty list before, or did not exist, is known only from what would have been made of it.
        texts[path] = next(
            (old for old in (*backups[path], "") if _wrap_again(at, path, old, launch, named) == at.text(path)), texts[path]
        )
    return HookPlan(at, result, texts)


def write(plan: HookPlan, *, is_undo: bool) -> dict[Path, Path | None]:
    """Write all files or none. Returns the changed files with their backups, if they have one."""
    copies: dict[Path, Path | None] = {}
    now = datetime.now(UTC)
    for path in plan.changed:
        if path in plan.files.found:
            plan.files.found[path].require_writable()
    with ExitStack() as undo:
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
                copies[path] = file.restore(text, now) if is_undo else file.replace(text, now)
                undo.callback(_put_back, path, file.text)
        undo.pop_all()
    return copies


def _put_back(path: Path, text: str) -> None:
    files.read(path).restore(text, datetime.now(UTC))


def _read(path: Path) -> ClientFile:
    file = files.read(path)
    if not file.text.strip():
        raise SettingsError(f"{path} is empty. Remove it, or write {{}} into it, and run this again.")
    return file


def _wrap_again(at: HookFiles, path: Path, old: str, launch: Sequence[str], named: Sequence[str]) -> str | None:
    with suppress(SettingsError):
        if path == at.servers:
            old = at.place.add_server(old, "", launch)
            old = rewriting.wrap(old, "", launch, named, at.client.dialect).text if named else old
        return at.place.add_hook(old, "", launch) if path == at.hooks else old
    return None
