"""What `overspill wrap` and `overspill unwrap` write into a client's files: all of it or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from overspill.cli.client_files.target import ClientFiles, HookFiles
from overspill.errors import SettingsError
from overspill.mcp.host_configs import display, files, rewriting
from overspill.mcp.host_configs.rewriting import Rewriting


class FilePlan(Struct, frozen=True):
    """The new text of each file. A file whose text is empty is removed."""

    files: ClientFiles
    servers: Rewriting
    texts: Mapping[Path, str]
    is_undo: bool = False

    @property
    def changed(self) -> list[Path]:
        return [path for path, text in self.texts.items() if text != self.files.text(path)]


def plan_wrap(at: ClientFiles, launch: Sequence[str], only: Sequence[str] = ()) -> FilePlan:
    hooked, name = at if isinstance(at, HookFiles) else None, str(at.servers)
    text = at.text(at.servers)
    result = display.wrap(hooked.place.add_server(text, name, launch) if hooked else text, name, launch, only, at.dialect)
    texts = {at.servers: result.text}
    if hooked:
        before = texts.get(hooked.hooks, at.text(hooked.hooks))
        texts[hooked.hooks] = hooked.place.add_hook(before, str(hooked.hooks), launch)
    return FilePlan(at, result, texts)


def plan_unwrap(at: ClientFiles, only: Sequence[str] = ()) -> FilePlan:
    backups = {path: file.read_backups() for path, file in at.found.items()}
    if isinstance(at, HookFiles):
        return _plan_unwrap_hooks(at, backups)
    result = rewriting.unwrap(at.text(at.servers), str(at.servers), backups[at.servers], only, at.dialect)
    return FilePlan(at, result, {at.servers: result.text}, is_undo=True)


def _plan_unwrap_hooks(at: HookFiles, backups: Mapping[Path, Sequence[str]]) -> FilePlan:
    texts = {path: at.text(path) for path in (at.servers, at.hooks)}
    launch = at.launch
    result = Rewriting(texts[at.servers], ())
    if at.place.find_server(texts[at.servers], str(at.servers)):
        result = rewriting.unwrap(texts[at.servers], str(at.servers), backups[at.servers], (), at.dialect)
        texts[at.servers] = at.place.remove_server(result.text, str(at.servers))
    texts[at.hooks] = at.place.remove_hook(texts[at.hooks], str(at.hooks), launch)
    named = [outcome.server for outcome in result.outcomes if outcome.change == "unwrapped"]
    for path in at.found:
        # What was an empty list before, or did not exist, is known only from what would have been made of it.
        texts[path] = next(
            (old for old in (*backups[path], "") if _wrap_again(at, path, old, launch, named) == at.text(path)), texts[path]
        )
    return FilePlan(at, result, texts, is_undo=True)


def write(plan: FilePlan) -> dict[Path, Path | None]:
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
                copies[path] = file.restore(text, now) if plan.is_undo else file.replace(text, now)
                undo.callback(_put_back, path, file.text)
        undo.pop_all()
    return copies


def _put_back(path: Path, text: str) -> None:
    files.read(path).restore(text, datetime.now(UTC))


def _wrap_again(at: HookFiles, path: Path, old: str, launch: Sequence[str], named: Sequence[str]) -> str | None:
    with suppress(SettingsError):
        if path == at.servers:
            old = at.place.add_server(old, "", launch)
            old = rewriting.wrap(old, "", launch, named, at.dialect).text if named else old
        return at.place.add_hook(old, "", launch) if path == at.hooks else old
    return None
