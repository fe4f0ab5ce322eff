"""Rewrite a client's whole file, so that its servers run through the proxy or no longer do."""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from overspill.errors import SettingsError
from overspill.mcp.host_configs import entries
from overspill.mcp.host_configs.clients import USUAL, ConfigDialect
from overspill.mcp.host_configs.documents import UnwritableFile, WrittenEntry, dump_entry, open_document
from overspill.mcp.host_configs.entries import HIDDEN, mask, recognize
from overspill.mcp.host_configs.own_entries import SERVER, list_words
from overspill.text import jsonc
from overspill.text.humanize import escape_line
from overspill.text.jsonc import Edit, Node

ALREADY_WRAPPED = entries.ALREADY_WRAPPED
NO_ORIGINAL = "its original entry is unknown; change it by hand"
NOT_WRAPPED = "it does not run through Overspill"

Change = Literal["wrapped", "unwrapped", "none"]


class ConfiguredServer(Struct, frozen=True):
    name: str
    project: str
    entry: Node
    """The entry in the usual spelling, which is the original text if the client uses that spelling itself."""
    written: WrittenEntry


EntryChange: TypeAlias = Sequence[Edit] | ConfiguredServer | str
"""The edits of an entry in the usual spelling, or the earlier server that it becomes again, or why it does not change."""


class RewriteOutcome(Struct, frozen=True):
    """What changed for a server, or why nothing changed. `before` and `after` are its entry in the usual spelling."""

    server: str
    project: str
    change: Change
    reason: str = ""
    before: str = ""
    after: str = ""


class Rewriting(Struct, frozen=True):
    text: str
    outcomes: tuple[RewriteOutcome, ...]
    group: str = ""
    """The group whose entry `overspill` was added or removed."""
    one: str = ""
    """The name of the entry that now runs the servers, or no longer does."""
    tokens: Mapping[str, str] = {}
    """The servers that each token for the hub may now use; empty if the token is revoked."""


class ConfigFile:
    """A client's file, which errors call `name`. A file that will only be read need not be one that we can write."""

    def __init__(self, text: str, name: str, dialect: ConfigDialect, *, is_written: bool = True) -> None:
        self._name = name
        self._dialect = dialect
        self._document = open_document(text, name, dialect, is_written=is_written)
        self._edits: list[Edit] = []
        self.servers: list[ConfiguredServer] = []
        for each in self._document.entries:
            node = each.node if dialect.is_usual or self._is_usual(each.value) else None
            if node is None:
                usual = json.dumps(dialect.to_usual(each.value), indent=2, default=str)  # TOML and YAML have dates
                node = jsonc.scan(usual, f"{each.name} in {name}")
            self.servers.append(ConfiguredServer(each.name, each.project, node, each))
        self._by_name = defaultdict[tuple[str, str], list[ConfiguredServer]](list)
        for server in self.servers:
            self._by_name[server.name, server.project].append(server)

    def rewrite(self, only: Sequence[str], verb: Change, change: Callable[[ConfiguredServer], EntryChange]) -> Rewriting:
        outcomes: list[RewriteOutcome] = []
        for server in select_servers(self.servers, self._name, only):
            made = change(server)
            if isinstance(made, str):
                outcomes.append(RewriteOutcome(server.name, server.project, "none", made))
            else:
                before, after = server.entry.raw, self._apply(server, made)
                outcomes.append(RewriteOutcome(server.name, server.project, verb, "", before, after))
        return Rewriting(self._document.text(self._edits), tuple(outcomes))

    def find_reader(self, group: str) -> ConfiguredServer | None:
        """Find the entry that offers the group's retrieval tools. Raises SettingsError if another server has its name."""
        found = next((server for server in self.servers if server.name == SERVER and not server.project), None)
        if found and list_words(found.entry)[-2:] != ["serve", group]:
            raise SettingsError(f"{self._name} already has a server {SERVER!r}, and it is another one. Rename it first.")
        return found

    def add_reader(self, group: str, launch: Sequence[str]) -> None:
        if self._dialect.format == "yaml" or any(server.project for server in self.servers[:1]):
            why = "its entries need more keys" if self._dialect.format == "yaml" else "its servers are in projects"
            raise SettingsError(f"{self._name} cannot get an entry {SERVER!r}: {why}. Leave out --grouped.")
        program, *words = launch
        usual = {"type": "stdio", "command": program, "args": [*words, "serve", group]}
        types = {server.entry.get("type") is not None for server in self.servers}
        entry = self._dialect.from_usual(usual if types == {True} else {key: usual[key] for key in ("command", "args")})
        self._edits += self._document.add(SERVER, entry)

    def remove_reader(self) -> None:
        self._edits += self._document.remove(SERVER)

    def wrap(self, server: ConfiguredServer, launch: Sequence[str], *, is_named: bool, group: str) -> EntryChange:
        why = "" if recognize(server.name, server.entry) else self._dialect.find_refusal(server.written.value)
        why = why or entries.find_refusal(server.name, server.entry, is_named=is_named)
        return why or entries.wrap_entry(server.name, server.entry, launch, group)

    def unwrap(self, server: ConfiguredServer, earlier: Sequence[ConfigFile]) -> EntryChange:
        """Find what an entry was before. If an earlier file has the original, its exact text returns, if the format allows it."""
        found = recognize(server.name, server.entry)
        if not found:
            return NOT_WRAPPED
        for file in earlier:
            for old in file._by_name[server.name, server.project]:
                if not entries.find_refusal(old.name, old.entry):
                    now = entries.edit_entry(old.entry, entries.wrap_entry(old.name, old.entry, found.launch, found.group))
                    if file._translate(now) == server.written.value:
                        return old
        edits = entries.unwrap_entry(server.entry, found)
        return NO_ORIGINAL if edits is None else edits

    def _is_usual(self, value: Mapping[str, Any]) -> bool:
        return "url" not in value and self._dialect.to_usual(value) == value

    def _apply(self, server: ConfiguredServer, made: Sequence[Edit] | ConfiguredServer) -> str:
        """Make the edits of the file for one entry, and return the entry's new text."""
        written = server.written
        if isinstance(made, ConfiguredServer):
            here, there = written.node, made.written.node
            put = self._document.put
            self._edits += [jsonc.replace(here, there.raw)] if here and there else put(written, made.written.value)
            return made.entry.raw
        after = entries.edit_entry(server.entry, made)
        if server.entry is written.node and (self._dialect.is_usual or self._is_usual(jsonc.scan(after, self._name).value)):
            self._edits += made
            return after
        before, changed = self._translate(server.entry.raw), self._translate(after)
        # Unchanged values keep what the file has: they may be of a type that JSON lacks.
        has = written.value
        new = {key: has[key] if key in has and before.get(key) == value else value for key, value in changed.items()}
        self._edits += self._document.put(written, new)
        return after

    def _translate(self, usual: str) -> dict[str, Any]:
        return self._dialect.from_usual(jsonc.scan(usual, self._name).value)


def list_servers(text: str, name: str, dialect: ConfigDialect = USUAL) -> list[ConfiguredServer]:
    """List all entries, in order and in the usual spelling. Errors call the file `name`."""
    return ConfigFile(text, name, dialect, is_written=False).servers


def select_servers(found: Sequence[ConfiguredServer], name: str, only: Sequence[str]) -> list[ConfiguredServer]:
    known = {server.name for server in found}
    for wanted in only:
        if wanted not in known:
            names = ", ".join(map(escape_line, sorted(known))) or "none"
            raise SettingsError(f"{name} has no server {wanted!r}. Its servers: {names}.")
    return [server for server in found if not only or server.name in only]


def wrap(
    text: str, name: str, launch: Sequence[str], only: Sequence[str] = (), dialect: ConfigDialect = USUAL, group: str = ""
) -> Rewriting:
    """Wrap servers. With a `group`, an additional entry offers the retrieval tools for all. If the file cannot be written,
    the error contains the lines to paste, without secrets."""
    try:
        return _wrap(ConfigFile(text, name, dialect), launch, only, group)
    except UnwritableFile as problem:
        file = ConfigFile(text, name, dialect, is_written=False)
        there = {server.name: server.written.value for server in file.servers}
        outcomes = [outcome for outcome in _wrap(file, launch, only, "").outcomes if outcome.change == "wrapped"]
        if not outcomes:
            raise
        shown = "\n".join(_spell(outcome, there[outcome.server], dialect) for outcome in outcomes).rstrip()
        own = f" Where it says {HIDDEN}, keep your own value." if HIDDEN.strip('"') in shown else ""
        raise SettingsError(f"{problem} Paste these over the entries of the same names.{own}\n\n{shown}") from None


def _wrap(file: ConfigFile, launch: Sequence[str], only: Sequence[str], group: str) -> Rewriting:
    def change(server: ConfiguredServer) -> EntryChange:
        return file.wrap(server, launch, is_named=server.name in only, group=group)

    is_new = bool(group) and file.find_reader(group) is None
    if not is_new:
        return file.rewrite(only, "wrapped", change)
    if all(isinstance(change(server), str) for server in select_servers(file.servers, "the file", only)):
        return file.rewrite(only, "wrapped", change)
    file.add_reader(group, launch)
    return replace(file.rewrite(only, "wrapped", change), group=group)


def _spell(outcome: RewriteOutcome, there: Mapping[str, Any], dialect: ConfigDialect) -> str:
    """Write the new entry. Unchanged values come from the existing entry, because we wrap entries as JSON, which has no dates."""
    entry = dialect.from_usual(jsonc.scan(mask(outcome.after), outcome.server).value)
    kept = {key: there[key] for key, value in entry.items() if key in there and _to_json(there[key]) == _to_json(value)}
    return dump_entry({**entry, **kept}, outcome.server, dialect)


def _to_json(value: Any) -> str:
    return json.dumps(value, default=str, sort_keys=True)


def unwrap(
    text: str, name: str, earlier: Sequence[str] = (), only: Sequence[str] = (), dialect: ConfigDialect = USUAL
) -> Rewriting:
    """Undo wrapping. `earlier` holds former texts of the file, newest first."""
    file, before = ConfigFile(text, name, dialect), list[ConfigFile]()
    for old in earlier:
        with suppress(SettingsError):
            before.append(ConfigFile(old, name, dialect))
    wrapped = {server.name: found for server in file.servers if (found := recognize(server.name, server.entry))}
    group = next((found.group for found in wrapped.values() if found.group), "")
    is_last = group and not any(found.group for server, found in wrapped.items() if only and server not in only)
    if is_last and file.find_reader(group):
        file.remove_reader()
    made = file.rewrite(only, "unwrapped", lambda server: file.unwrap(server, before))
    made = replace(made, group=group if is_last else "")
    launches = {found.launch for found in wrapped.values()}
    names = [server.name for server in file.servers if not group or server.name != SERVER]
    for old in earlier if not only and len(launches) == 1 else ():
        with suppress(SettingsError):
            if wrap(old, name, launches.copy().pop(), names, dialect, group).text == text:
                return replace(made, text=old)  # undoing each entry could leave other spaces and comments
    return made


def diff_entry(outcome: RewriteOutcome) -> list[str]:
    """Write a diff that shows the whole entry, without its secrets."""
    before, after = (mask(text).splitlines() for text in (outcome.before, outcome.after))
    lines = difflib.unified_diff(before, after, n=len(before), lineterm="")
    return list(lines)[3:]


def example_entries(launch: Sequence[str]) -> dict[str, Any]:
    """Return entries for users to copy, in the form that most clients take."""
    program, *words = launch
    command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/path/to/files"]
    return {
        "mcpServers": {
            "files": {"command": program, "args": [*words, "proxy", "--name", "files", "--", *command]},
            "api": {
                "command": program,
                "args": [
                    *words,
                    "proxy",
                    "--name",
                    "api",
                    "--header-env",
                    "Authorization=API_AUTH",
                    "--url",
                    "https://mcp.example.com/mcp",
                ],
                "env": {"API_AUTH": "Bearer YOUR-TOKEN"},
            },
        }
    }


def instructions(launch: Sequence[str]) -> str:
    return _INSTRUCTIONS.format(pattern=json.dumps(example_entries(launch), indent=2))


_INSTRUCTIONS = """\
For any client that starts MCP servers: let it start Overspill, with the server's own command after `--`.
A server with a URL becomes a command, too. Its headers come from environment variables, so that no process list shows them.

{pattern}

Leave everything else in an entry (env, cwd and so on) unchanged. Clients with other configurations (TOML, YAML, a form) take
the same command, arguments and variables. To go back, remove everything up to `--`."""
