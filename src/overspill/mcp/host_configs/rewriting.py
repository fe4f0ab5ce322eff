"""Rewrite a client's whole file, so that its servers run through the proxy or no longer do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from overspill.errors import SettingsError
from overspill.mcp.host_configs import entries
from overspill.mcp.host_configs.dialects import USUAL, Dialect
from overspill.mcp.host_configs.documents import list_keys
from overspill.mcp.host_configs.entries import Refusal
from overspill.mcp.host_configs.originals import unwrap_entry
from overspill.mcp.host_configs.proxied import recognize
from overspill.mcp.host_configs.translating import NO_ORIGINAL, NOT_WRAPPED, Translation, open_earlier
from overspill.text import jsonc
from overspill.text.humanize import escape_line
from overspill.text.jsonc import Edit, Node

ALREADY_WRAPPED = entries.ALREADY_WRAPPED
_TABLES = ("mcpServers", "servers")

Change = Literal["wrapped", "unwrapped", "none"]


class Server(Struct, frozen=True):
    """One entry. In Claude Code, a server may belong to one project; `project` is its folder."""

    name: str
    project: str
    entry: Node


class Outcome(Struct, frozen=True):
    """What changed for a server, or why nothing did. `before` and `after` are the texts of its entry."""

    server: str
    project: str
    change: Change
    reason: str = ""
    before: str = ""
    after: str = ""


class Rewriting(Struct, frozen=True):
    text: str
    outcomes: tuple[Outcome, ...]


def list_servers(text: str, name: str, dialect: Dialect = USUAL) -> list[Server]:
    """All entries, in order and in the usual spelling. Errors call the file `name`."""
    if dialect is not USUAL:
        return [Server(server, "", node) for server, node in Translation(text, name, dialect, is_written=False).nodes.items()]
    if not text.strip():
        raise SettingsError(f"{name} is empty, so it has no servers.")
    root = jsonc.scan(text, name)
    tables = list(_find_tables(root, name))
    if not tables:
        others = [key for key in root.names if key not in (*_TABLES, "projects")] if root.kind == "object" else []
        has = f" Its keys: {list_keys(others)}." if others else ""
        raise SettingsError(
            f"{name} has no servers: it has neither an mcpServers nor a servers key.{has} "
            "For a client with another kind of file, see `overspill wrap --print`."
        )
    return [
        Server(key.value, project, entry)
        for project, table in tables
        for key, entry in zip(table.keys, table.children, strict=True)
    ]


def wrap(text: str, name: str, launch: Sequence[str], only: Sequence[str] = (), dialect: Dialect = USUAL) -> Rewriting:
    if dialect is not USUAL:
        return _wrap_translated(Translation(text, name, dialect), name, launch, only)

    def change(server: Server) -> list[Edit] | Refusal:
        refusal = entries.find_refusal(server.name, server.entry)
        if refusal and refusal.unless_named and server.name not in only:
            return Refusal(f"{refusal.reason}; name it with --server to wrap it anyway")
        if refusal and not refusal.unless_named:
            return refusal
        return entries.wrap_entry(server.name, server.entry, launch)

    return _rewrite(text, select_servers(list_servers(text, name), name, only), change, "wrapped")


def preview(text: str, name: str, launch: Sequence[str], only: Sequence[str], dialect: Dialect) -> Rewriting:
    """What `wrap` would do to entries, also of a file that cannot be written again without other changes."""
    return _wrap_translated(Translation(text, name, dialect, is_written=False), name, launch, only)


def unwrap(text: str, name: str, earlier: Sequence[str] = (), only: Sequence[str] = (), dialect: Dialect = USUAL) -> Rewriting:
    """`earlier` holds former texts of the file, newest first. An entry made from one of them gets its exact text back."""
    if dialect is not USUAL:
        return _unwrap_translated(text, name, earlier, only, dialect)
    known = [server for old in earlier for server in _list_readable(old)]

    def change(server: Server) -> list[Edit] | Refusal:
        found = recognize(server.name, server.entry) if server.entry.kind == "object" else None
        if not found:
            return Refusal(NOT_WRAPPED)
        for old in known:
            if (old.name, old.project) == (server.name, server.project) and _wraps_into(old, server.entry, found.launch):
                return [jsonc.replace(server.entry, old.entry.raw)]
        edits = unwrap_entry(server.entry, found)
        return Refusal(NO_ORIGINAL) if edits is None else edits

    return _rewrite(text, select_servers(list_servers(text, name), name, only), change, "unwrapped")


def _find_tables(root: Node, name: str) -> Iterator[tuple[str, Node]]:
    for project, place in [("", root), *_find_projects(root)]:
        for key in (*_TABLES, "projects"):
            if place.names.count(key) > 1:
                raise SettingsError(f"{name} has the key {key!r} twice. Keep one.")
        for key in _TABLES if place is root else _TABLES[:1]:
            table = place.get(key)
            if table and table.kind == "object":
                if table.duplicate_key:
                    raise SettingsError(f"{name} has the server {table.duplicate_key!r} twice. Keep one.")
                yield project, table


def _find_projects(root: Node) -> list[tuple[str, Node]]:
    projects = root.get("projects")
    return [(key.value, child) for key, child in zip(projects.keys, projects.children, strict=True)] if projects else []


def select_servers(found: Sequence[Server], name: str, only: Sequence[str]) -> list[Server]:
    known = {server.name for server in found}
    for wanted in only:
        if wanted not in known:
            names = ", ".join(map(escape_line, sorted(known))) or "none"
            raise SettingsError(f"{name} has no server {wanted!r}. Its servers: {names}.")
    return [server for server in found if not only or server.name in only]


def _rewrite(text: str, found: Sequence[Server], change: Callable[[Server], list[Edit] | Refusal], verb: Change) -> Rewriting:
    edits: list[Edit] = []
    outcomes: list[Outcome] = []
    for server in found:
        made = change(server)
        if isinstance(made, Refusal):
            outcomes.append(Outcome(server.name, server.project, "none", made.reason))
        else:
            edits += made
            outcomes.append(Outcome(server.name, server.project, verb, "", server.entry.raw, edit_entry(server.entry, made)))
    return Rewriting(jsonc.apply_edits(text, edits), tuple(outcomes))


def edit_entry(entry: Node, edits: Sequence[Edit]) -> str:
    """Apply edits of the file to the text of one entry."""
    moved = [Edit(edit.start - entry.start, edit.end - entry.start, edit.text) for edit in edits]
    return jsonc.apply_edits(entry.raw, moved)


def _wraps_into(old: Server, entry: Node, launch: Sequence[str]) -> bool:
    """Whether wrapping the old entry results in this one."""
    refusal = entries.find_refusal(old.name, old.entry)
    if refusal and not refusal.unless_named:
        return False
    now = edit_entry(old.entry, entries.wrap_entry(old.name, old.entry, launch))
    return jsonc.scan(now, old.name).value == entry.value


def _list_readable(old: str) -> list[Server]:
    try:
        return list_servers(old, "")
    except SettingsError:
        return []


def _wrap_translated(file: Translation, name: str, launch: Sequence[str], only: Sequence[str]) -> Rewriting:
    return _translate(file, name, only, "wrapped", lambda file, server: file.wrap(server, launch, is_named=server in only))


def _unwrap_translated(text: str, name: str, earlier: Sequence[str], only: Sequence[str], dialect: Dialect) -> Rewriting:
    file, before = Translation(text, name, dialect), open_earlier(earlier, name, dialect)
    made = _translate(file, name, only, "unwrapped", lambda file, server: file.unwrap(server, before))
    launches = {found.launch for server, node in file.nodes.items() if (found := recognize(server, node))}
    for old in earlier if not only and len(launches) == 1 else ():
        with suppress(SettingsError):
            if wrap(old, name, launches.copy().pop(), list(file.nodes), dialect).text == text:
                return Rewriting(old, made.outcomes)  # entry by entry, spaces and comments might differ
    return made


def _translate(
    file: Translation,
    name: str,
    only: Sequence[str],
    verb: Change,
    change: Callable[[Translation, str], tuple[object, str, str] | Refusal],
) -> Rewriting:
    outcomes: list[Outcome] = []
    servers = [Server(server, "", node) for server, node in file.nodes.items()]
    for server in select_servers(servers, name, only):
        made = change(file, server.name)
        if isinstance(made, Refusal):
            outcomes.append(Outcome(server.name, "", "none", made.reason))
        else:
            _, before, after = made
            outcomes.append(Outcome(server.name, "", verb, "", before, after))
    return Rewriting(file.text, tuple(outcomes))
