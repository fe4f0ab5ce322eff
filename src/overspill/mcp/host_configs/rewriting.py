"""Rewrite a client's whole file, so that its servers run through the proxy or no longer do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from overspill.errors import SettingsError
from overspill.mcp.host_configs import entries
from overspill.mcp.host_configs.dialects import USUAL, ConfigDialect
from overspill.mcp.host_configs.documents import list_keys
from overspill.mcp.host_configs.proxied import recognize
from overspill.mcp.host_configs.translating import NO_ORIGINAL, NOT_WRAPPED, EntryChange, Translation, open_earlier
from overspill.text import jsonc
from overspill.text.humanize import escape_line
from overspill.text.jsonc import Edit, Node

ALREADY_WRAPPED = entries.ALREADY_WRAPPED
_TABLES = ("mcpServers", "servers")

Change = Literal["wrapped", "unwrapped", "none"]


class ConfiguredServer(Struct, frozen=True):
    """One entry. In Claude Code, a server may belong to one project; `project` is its folder."""

    name: str
    project: str
    entry: Node


class RewriteOutcome(Struct, frozen=True):
    """What changed for a server, or why nothing did. `before` and `after` are the texts of its entry."""

    server: str
    project: str
    change: Change
    reason: str = ""
    before: str = ""
    after: str = ""


class Rewriting(Struct, frozen=True):
    text: str
    outcomes: tuple[RewriteOutcome, ...]


def list_servers(text: str, name: str, dialect: ConfigDialect = USUAL) -> list[ConfiguredServer]:
    """All entries, in order and in the usual spelling. Errors call the file `name`."""
    if dialect is not USUAL:
        return [
            ConfiguredServer(server, "", node)
            for server, node in Translation(text, name, dialect, is_written=False).nodes.items()
        ]
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
        ConfiguredServer(key.value, project, entry)
        for project, table in tables
        for key, entry in zip(table.keys, table.children, strict=True)
    ]


def wrap(
    text: str,
    name: str,
    launch: Sequence[str],
    only: Sequence[str] = (),
    dialect: ConfigDialect = USUAL,
    *,
    is_written: bool = True,
) -> Rewriting:
    """If it is not to be written, also of a file that cannot be written again without other changes."""
    if dialect is not USUAL:
        file = Translation(text, name, dialect, is_written=is_written)
        return _translate(file, name, only, "wrapped", lambda server: file.wrap(server, launch, is_named=server in only))

    def change(server: ConfiguredServer) -> list[Edit] | str:
        why = entries.find_refusal(server.name, server.entry, is_named=server.name in only)
        return why or entries.wrap_entry(server.name, server.entry, launch)

    return _rewrite(text, select_servers(list_servers(text, name), name, only), change, "wrapped")


def unwrap(
    text: str, name: str, earlier: Sequence[str] = (), only: Sequence[str] = (), dialect: ConfigDialect = USUAL
) -> Rewriting:
    """`earlier` holds former texts of the file, newest first. An entry made from one of them gets its exact text back."""
    if dialect is not USUAL:
        return _unwrap_translated(text, name, earlier, only, dialect)
    known = [server for old in earlier for server in _list_readable(old)]

    def change(server: ConfiguredServer) -> list[Edit] | str:
        found = recognize(server.name, server.entry) if server.entry.kind == "object" else None
        if not found:
            return NOT_WRAPPED
        for old in known:
            if (old.name, old.project) == (server.name, server.project) and _wraps_into(old, server.entry, found.launch):
                return [jsonc.replace(server.entry, old.entry.raw)]
        edits = entries.unwrap_entry(server.entry, found)
        return NO_ORIGINAL if edits is None else edits

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


def select_servers(found: Sequence[ConfiguredServer], name: str, only: Sequence[str]) -> list[ConfiguredServer]:
    known = {server.name for server in found}
    for wanted in only:
        if wanted not in known:
            names = ", ".join(map(escape_line, sorted(known))) or "none"
            raise SettingsError(f"{name} has no server {wanted!r}. Its servers: {names}.")
    return [server for server in found if not only or server.name in only]


def _rewrite(
    text: str, found: Sequence[ConfiguredServer], change: Callable[[ConfiguredServer], list[Edit] | str], verb: Change
) -> Rewriting:
    edits: list[Edit] = []
    outcomes: list[RewriteOutcome] = []
    for server in found:
        made = change(server)
        if not isinstance(made, str):
            edits += made
            made = server.entry.raw, entries.edit_entry(server.entry, made)
        outcomes.append(_make_outcome(server, verb, made))
    return Rewriting(jsonc.apply_edits(text, edits), tuple(outcomes))


def _make_outcome(server: ConfiguredServer, verb: Change, made: EntryChange) -> RewriteOutcome:
    if isinstance(made, str):
        return RewriteOutcome(server.name, server.project, "none", made)
    return RewriteOutcome(server.name, server.project, verb, "", *made)


def _wraps_into(old: ConfiguredServer, entry: Node, launch: Sequence[str]) -> bool:
    """Whether wrapping the old entry results in this one."""
    if entries.find_refusal(old.name, old.entry):
        return False
    now = entries.edit_entry(old.entry, entries.wrap_entry(old.name, old.entry, launch))
    return jsonc.scan(now, old.name).value == entry.value


def _list_readable(old: str) -> list[ConfiguredServer]:
    try:
        return list_servers(old, "")
    except SettingsError:
        return []


def _unwrap_translated(text: str, name: str, earlier: Sequence[str], only: Sequence[str], dialect: ConfigDialect) -> Rewriting:
    file, before = Translation(text, name, dialect), open_earlier(earlier, name, dialect)
    made = _translate(file, name, only, "unwrapped", lambda server: file.unwrap(server, before))
    launches = {found.launch for server, node in file.nodes.items() if (found := recognize(server, node))}
    for old in earlier if not only and len(launches) == 1 else ():
        with suppress(SettingsError):
            if wrap(old, name, launches.copy().pop(), list(file.nodes), dialect).text == text:
                return Rewriting(old, made.outcomes)  # entry by entry, spaces and comments might differ
    return made


def _translate(
    file: Translation, name: str, only: Sequence[str], verb: Change, change: Callable[[str], EntryChange]
) -> Rewriting:
    servers = [ConfiguredServer(server, "", node) for server, node in file.nodes.items()]
    outcomes = tuple(_make_outcome(server, verb, change(server.name)) for server in select_servers(servers, name, only))
    return Rewriting(file.text, outcomes)
