"""Rewrite a client's whole file, so that its servers run through the proxy or no longer do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from overspill.errors import SettingsError
from overspill.mcp.host_configs import entries
from overspill.mcp.host_configs.dialects import USUAL, ConfigDialect
from overspill.mcp.host_configs.documents import JsonDocument, list_keys
from overspill.mcp.host_configs.entries import recognize
from overspill.mcp.host_configs.opening import open_document
from overspill.text import jsonc
from overspill.text.humanize import escape_line
from overspill.text.jsonc import Edit, Node

EntryChange: TypeAlias = tuple[str, str] | str
"""The texts of an entry before and after, in the usual spelling; or why it does not change."""
NO_ORIGINAL = "its original entry cannot be told; change it by hand"
NOT_WRAPPED = "it does not run through Overspill"


class Translation:
    """The config file of a client that has its own dialect."""

    def __init__(self, text: str, name: str, dialect: ConfigDialect, *, is_written: bool = True) -> None:
        self._dialect = dialect
        self._name = name
        self._document = open_document(text, name, dialect, is_written=is_written)
        self._entries = self._document.entries()
        self.nodes = {server: self._find_node(server, entry) for server, entry in self._entries.items()}
        """Each entry in the usual spelling: its own text where that is what the client reads too."""

    @property
    def text(self) -> str:
        return self._document.text()

    def wrap(self, server: str, launch: Sequence[str], *, is_named: bool) -> EntryChange:
        node = self.nodes[server]
        if recognize(server, node):
            return entries.ALREADY_WRAPPED
        why = self._dialect.find_refusal(self._entries[server]) or entries.find_refusal(server, node, is_named=is_named)
        return why or self._put(server, entries.wrap_entry(server, node, launch))

    def unwrap(self, server: str, earlier: Sequence[Translation]) -> EntryChange:
        node = self.nodes[server]
        found = recognize(server, node)
        if not found:
            return NOT_WRAPPED
        for old in earlier:
            if server in old.nodes and old.wraps_into(server, self._entries[server], found.launch):
                self._restore(server, old)
                return node.raw, old.nodes[server].raw
        edits = entries.unwrap_entry(node, found)
        return NO_ORIGINAL if edits is None else self._put(server, edits)

    def wraps_into(self, server: str, entry: Mapping[str, Any], launch: Sequence[str]) -> bool:
        node = self.nodes[server]
        if entries.find_refusal(server, node):
            return False
        return self._translate(entries.edit_entry(node, entries.wrap_entry(server, node, launch))) == entry

    def _find_node(self, server: str, entry: Mapping[str, Any]) -> Node:
        if isinstance(self._document, JsonDocument) and self._dialect.to_usual(entry) == entry and "url" not in entry:
            return self._document.node(server)
        usual = json.dumps(self._dialect.to_usual(entry), indent=2, default=str)  # TOML and YAML have dates
        return jsonc.scan(usual, f"{server} in {self._name}")

    def _restore(self, server: str, old: Translation) -> None:
        """As it was, to the character where the format allows it."""
        if isinstance(self._document, JsonDocument) and isinstance(old._document, JsonDocument):
            self._document.edit([jsonc.replace(self._document.node(server), old._document.node(server).raw)])
        else:
            self._document.put(server, old._entries[server])

    def _put(self, server: str, edits: Sequence[Edit]) -> EntryChange:
        node, entry = self.nodes[server], self._entries[server]
        after = entries.edit_entry(node, edits)
        is_own = isinstance(self._document, JsonDocument) and node is self._document.node(server)
        if isinstance(self._document, JsonDocument) and is_own and "url" not in jsonc.scan(after, self._name).value:
            self._document.edit(edits)
            return node.raw, after
        before, changed = self._translate(node.raw), self._translate(after)
        # What did not change stays what the file has: it may be of a type that JSON does not know.
        new = {key: entry[key] if key in entry and before.get(key) == value else value for key, value in changed.items()}
        self._document.put(server, new)
        return node.raw, after

    def _translate(self, usual: str) -> dict[str, Any]:
        return self._dialect.from_usual(jsonc.scan(usual, self._name).value)


def open_earlier(texts: Sequence[str], name: str, dialect: ConfigDialect) -> list[Translation]:
    found: list[Translation] = []
    for text in texts:
        try:
            found.append(Translation(text, name, dialect))
        except SettingsError:
            continue
    return found


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
