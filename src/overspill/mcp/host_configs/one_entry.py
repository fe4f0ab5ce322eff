"""One entry that runs all servers of a client, and the way back.

A command holds the text of the entries in its environment. For the address of a hub, a file of ours holds it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from overspill.errors import SettingsError
from overspill.mcp.host_configs import entries, rewriting
from overspill.mcp.host_configs.clients import ConfigDialect
from overspill.mcp.host_configs.documents import ConfigText, ConfiguredServer, JsonDocument, open_document
from overspill.mcp.host_configs.hub_clients import HubAddress
from overspill.mcp.host_configs.own_entries import list_words
from overspill.mcp.host_configs.rewriting import ConfigFile, RewriteOutcome, Rewriting, select_servers
from overspill.text import jsonc
from overspill.text.jsonc import Node

NAME, VARIABLE = "servers", entries.SERVERS_VARIABLE
_ARGUMENTS = ["proxy", "--config-env", VARIABLE]
_KEYS = {"type", "command", "args", "env", "cwd", "idleMinutes", "share"}
_MAX_BYTES = 120_000  # Linux starts no program with a variable of 131,072 bytes


Way: TypeAlias = Sequence[str] | HubAddress
"""How the one entry reaches Overspill: the command that starts it, or the address of the hub."""
FindServers: TypeAlias = Callable[[str], str | None]
"""Returns the servers that a token for the hub may use, as they were in the client's file."""


class HeldServers(Struct, frozen=True):
    """The servers in the one entry of a file."""

    table: Node
    way: Way
    servers: Node

    @property
    def names(self) -> list[str]:
        return self.servers.names


def wrap(source: ConfigText, way: Way, only: Sequence[str] = (), find_servers: FindServers = lambda _: None) -> Rewriting:
    """Raises SettingsError if the file cannot have such an entry. Servers that do not fit into it keep their own entries."""
    text, name, dialect = source.text, source.name, source.dialect
    if dialect.format != "json":
        raise SettingsError(
            f"{name} is not JSON, so one entry cannot hold its other entries exactly. Leave out --{_option(way)}."
        )
    held = _find_held(source, find_servers)
    if held and isinstance(held.way, HubAddress) and isinstance(way, HubAddress):
        way = replace(way, token=held.way.token)
    stays = held is not None and (held.way == way or HubAddress not in (type(held.way), type(way)))
    apart = _split(source, held)
    kept, chosen, outcomes = held.names if held and stays else [], list[str](), list[RewriteOutcome]()
    file = ConfigFile(apart)
    table = _open_table(apart)
    for server in select_servers(file.servers, name, [*only, *(held.names if held else ())] if only else ()):
        is_kept = server.name in kept and table.start < server.entry.start < table.end
        why = entries.ALREADY_WRAPPED if is_kept else _find_refusal(server, table, dialect, is_named=server.name in only)
        chosen += [] if why and not is_kept else [server.name]
        change = ("none", why, "", "") if why else ("wrapped", "", server.entry.raw, "{}")
        outcomes.append(RewriteOutcome(server.name, server.project, *change))
    if len(chosen) == len(kept):
        return Rewriting(text, tuple(outcomes))
    if held and _join(apart, held.way, held.names)[0] != text:
        raise SettingsError(f"The entry {NAME!r} in {name} was changed by hand. Run overspill unwrap first.")
    joined, servers = _join(apart, way, chosen)
    tokens = {each.token: "" for each in (held and held.way,) if isinstance(each, HubAddress)}
    tokens |= {way.token: servers} if isinstance(way, HubAddress) else {}
    return Rewriting(joined, tuple(outcomes), one=NAME, tokens=tokens)


def unwrap(
    source: ConfigText, earlier: Sequence[str], only: Sequence[str], find_servers: FindServers, *, keeps_reader: bool = False
) -> Rewriting:
    """Undo every way to wrap. `earlier` holds former texts of the file, newest first."""
    held = _find_held(source, find_servers) if source.dialect.format == "json" else None
    if held is None:
        return rewriting.unwrap(source, earlier, only, keeps_reader=keeps_reader)
    gone = [server for server in held.names if not only or server in only]
    rest = [server for server in held.names if server not in gone]
    apart, others = _split(source, held), [server for server in only if server not in gone]
    left, servers = _join(apart, held.way, rest) if rest else (apart.text, "")
    made = Rewriting(left, ())
    if others or not only:
        made = rewriting.unwrap(replace(source, text=left), earlier, others, keeps_reader=keeps_reader)
    raws = zip(held.names, held.servers.children, strict=True)
    outcomes = [RewriteOutcome(server, "", "unwrapped", "", "{}", node.raw) for server, node in raws if server in gone]
    outcomes += [outcome for outcome in made.outcomes if outcome.server not in gone or outcome.project]
    tokens = {held.way.token: servers} if isinstance(held.way, HubAddress) else {}
    made = replace(made, outcomes=tuple(outcomes), one="" if rest else NAME, tokens=tokens)
    for old in () if only else earlier:
        with suppress(SettingsError):
            found = rewriting.list_servers(replace(source, text=old))  # a copy may be of a file that was wrapped before
            is_whole = not any(entries.recognize(each.name, each.entry) or HubAddress.find(each.entry) for each in found)
            if is_whole and wrap(replace(source, text=old), held.way, held.names).text == source.text:
                return replace(made, text=old)  # the order and the comments between entries might differ
    return made


def _open_table(source: ConfigText) -> Node:
    document = open_document(source)
    assert isinstance(document, JsonDocument)
    return document.table


def _find_held(source: ConfigText, find_servers: FindServers) -> HeldServers | None:
    """Raises SettingsError if what the entry holds was changed so that it cannot be read."""
    name, table = source.name, _open_table(source)
    entry = table.get(NAME)
    if entry is None or entry.kind != "object":
        return None
    way: Way | None = HubAddress.find(jsonc.scan(json.dumps(source.dialect.to_usual(entry.value)), name))
    words, value = list_words(entry), entry.get("env", VARIABLE)
    if way:
        held, where = find_servers(way.token) or "{}", f"Overspill's file for the entry {NAME!r}"
    elif words[-3:] == _ARGUMENTS and value and value.kind == "string":
        way, held, where = tuple(words[:-3]), str(value.value), VARIABLE
    else:
        return None
    servers = jsonc.scan(held, f"{where} in {name}").get("mcpServers")
    if servers is None or not servers.keys:
        raise SettingsError(f"{where} in {name} has no mcpServers. Restore the file from its copy.")
    if twice := next((each for each in servers.names if each in table.names), servers.duplicate_key):
        raise SettingsError(f"{name} has the server {twice!r} twice, once in its entry {NAME!r}. Remove the other one.")
    return HeldServers(table, way, servers)


def _split(source: ConfigText, held: HeldServers | None) -> ConfigText:
    """Put the entries back in place of the one that holds them."""
    if held is None:
        return source
    place, text = held.table.names.index(NAME), source.text
    start, end = held.table.keys[place].start, held.table.children[place].end
    servers = held.servers.text[held.servers.keys[0].start : held.servers.children[-1].end]
    return replace(source, text=text[:start] + servers + text[end:])


def _option(way: Way) -> str:
    return "hub-http" if isinstance(way, HubAddress) else "one"


def _join(source: ConfigText, way: Way, chosen: Collection[str]) -> tuple[str, str]:
    """Put one entry in place of those that are chosen. Returns the text, and the chosen servers."""
    text, name, table = source.text, source.name, _open_table(source)
    if NAME in table.names:
        raise SettingsError(f"{name} already has a server {NAME!r}. Rename it first.")
    indexes = [at for at, each in enumerate(table.names) if each in chosen]
    firsts = [at for at in indexes if at - 1 not in indexes]
    lasts = [at for at in indexes if at + 1 not in indexes]
    parts = [text[table.keys[first].start : table.children[last].end] for first, last in zip(firsts, lasts, strict=True)]
    begin, end = table.keys[firsts[0]].start, table.children[lasts[0]].end
    layout = text[text.rfind("\n", 0, begin) + 1 : begin]
    held = '{"mcpServers": {' + (", " if layout.strip() else f",\n{layout}").join(parts) + "}}"
    if "$" in held or len(held.encode()) > _MAX_BYTES:  # within an entry, it was refused before
        why = "a comment between its servers has a $" if "$" in held else f"its servers are more than {_MAX_BYTES:,} bytes"
        raise SettingsError(f"{name} cannot have one entry: {why}. Leave out --{_option(way)}.")
    if isinstance(way, HubAddress):
        entry = source.dialect.from_usual(way.entry(source.dialect.http_type or ""))
    else:
        program, *words = way
        has_types = all(table.children[at].get("type") for at in indexes)
        entry = {"type": "stdio"} if has_types else {}
        entry |= {"command": program, "args": [*words, *_ARGUMENTS], "env": {VARIABLE: held}}
    member = f"{jsonc.quote(NAME)}: {jsonc.write_like_first(table, entry)}"
    edits = [jsonc.Edit(begin, end, member), *jsonc.remove(table, [at for at in indexes if at > lasts[0]])]
    return jsonc.apply_edits(text, edits), held


def _find_refusal(server: ConfiguredServer, table: Node, dialect: ConfigDialect, *, is_named: bool) -> str:
    """Why a server cannot be in the one entry; empty if it can."""
    entry = server.entry
    why = dialect.find_refusal(server.value) if entry.kind == "object" else ""
    if why := why or entries.find_refusal(server.name, entry, is_named=is_named):
        return f"{why} on its own; unwrap it first" if why == entries.ALREADY_WRAPPED else why
    if server.project or entry.start < table.start or entry.end > table.end:
        return "it is not in the file's first list of servers" if not server.project else "it belongs to a project"
    if entry.get("url"):
        return "it is remote, and one entry holds only servers with a command"
    if entry is not server.node:
        return "its client spells a command in a way that one entry cannot hold"
    if strange := next((key for key in entry.names if key not in _KEYS), ""):
        return f"only your client understands its key {strange!r}"
    if "$" in server.name or "$" in entry.raw:
        return "it has a $, and your client may fill in something there"
    env, folder = entry.get("env"), entry.get("cwd")
    is_plain = env is None or (env.kind == "object" and all(each.kind == "string" for each in env.children))
    return "" if is_plain and (folder is None or folder.kind == "string") else "its env or its cwd is not made of strings"
