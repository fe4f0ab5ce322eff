"""Rewrite a client's whole file, so that its servers run through the proxy or no longer do."""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from overspill.errors import SettingsError
from overspill.mcp.host_configs import entries
from overspill.mcp.host_configs.clients import ConfigDialect
from overspill.mcp.host_configs.documents import ConfigText, ConfiguredServer, UnwritableFile, dump_entry, open_document
from overspill.mcp.host_configs.entries import recognize
from overspill.mcp.host_configs.masking import HIDDEN, mask
from overspill.mcp.host_configs.own_entries import SERVER, list_words, serves_outputs
from overspill.text import jsonc
from overspill.text.humanize import escape_line
from overspill.text.jsonc import Edit

ALREADY_WRAPPED = entries.ALREADY_WRAPPED
NO_ORIGINAL = "its original entry is unknown; change it by hand"
NOT_WRAPPED = "it does not run through Overspill"
_TRANSPARENT = {"uv", "uvx"}  # programs behind which Overspill still finds its client

Change = Literal["wrapped", "regrouped", "unwrapped", "none"]
"""`regrouped`: it was wrapped before, and another entry now offers the tools that read its outputs, or no longer does."""


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
    is_grouped: bool = False
    """Whether that entry now offers the retrieval tools of those that were wrapped."""
    ungrouped: str = ""
    """Why each entry offers its own retrieval tools, although they were to be a group."""
    one: str = ""
    """The name of the entry that now runs the servers, or no longer does."""
    tokens: Mapping[str, str] = {}
    """The servers that each token for the hub may now use; empty if the token is revoked."""


class ConfigFile:
    """A client's file. A file that will only be read need not be one that we can write."""

    def __init__(self, source: ConfigText, *, is_written: bool = True) -> None:
        self.name, self._dialect = source.name, source.dialect
        self._document = open_document(source, is_written=is_written)
        self.servers = self._document.servers
        self._by_name = defaultdict[tuple[str, str], list[ConfiguredServer]](list)
        for server in self.servers:
            self._by_name[server.name, server.project].append(server)

    def rewrite(self, only: Sequence[str], verb: Change, change: Callable[[ConfiguredServer], EntryChange]) -> Rewriting:
        outcomes: list[RewriteOutcome] = []
        for server in select_servers(self.servers, self.name, only):
            made = change(server)
            if isinstance(made, str):
                outcomes.append(RewriteOutcome(server.name, server.project, "none", made))
            else:
                before, after = server.entry.raw, self._apply(server, made)
                kind = "regrouped" if verb == "wrapped" and recognize(server.name, server.entry) else verb
                outcomes.append(RewriteOutcome(server.name, server.project, kind, "", before, after))
        return Rewriting(self._document.text, tuple(outcomes))

    def find_reader(self) -> str | None:
        """Return the group whose retrieval tools the entry `overspill` offers; empty without it, None if it is another server."""
        found = next((server.entry for server in self.servers if server.name == SERVER and not server.project), None)
        if found is None:
            return ""
        return list_words(found)[-1] if serves_outputs(SERVER, found) else None

    def find_obstacle(self, launch: Sequence[str]) -> str:
        """Return why no entry can offer the retrieval tools for all; empty if one can."""
        if (reader := self.find_reader()) is None:
            return f"another server is called {SERVER!r}"
        if len(launch) > 1 and PurePath(launch[0]).name not in _TRANSPARENT:
            return f"{launch[0]} starts Overspill, so it cannot see which client it works for"
        if not reader and self._dialect.format == "yaml":
            return "entries of this client need more keys"
        allowed = self._document.allowed
        if not reader and allowed is not None and SERVER not in allowed:
            return f"the file has a list of allowed servers, without {SERVER!r}"
        return "its servers belong to projects" if not reader and any(each.project for each in self.servers[:1]) else ""

    def add_reader(self, group: str, launch: Sequence[str]) -> None:
        program, *words = launch
        usual = {"type": "stdio", "command": program, "args": [*words, "serve", group]}
        types = {server.entry.get("type") is not None for server in self.servers}
        entry = self._dialect.from_usual(usual if types == {True} else {key: usual[key] for key in ("command", "args")})
        self._document.add(SERVER, entry)

    def remove_reader(self, only: Sequence[str]) -> str:
        """Remove the entry that reads for a group if these servers, or all, are the last of it. Returns the group, or nothing."""
        groups = {server.name: found.group for server in self.servers if (found := recognize(server.name, server.entry))}
        group = next(filter(None, groups.values()), "")
        if not group or any(each for name, each in groups.items() if only and name not in only) or self.find_reader() != group:
            return ""
        self._document.remove(SERVER)
        return group

    def wrap(self, server: ConfiguredServer, launch: Sequence[str], group: str, *, is_named: bool, regroups: bool) -> EntryChange:
        found = recognize(server.name, server.entry)
        why = "" if found else self._dialect.find_refusal(server.value)
        why = why or entries.find_refusal(server.name, server.entry, is_named=is_named)
        if found and regroups and why == ALREADY_WRAPPED:
            return entries.regroup_entry(server.name, server.entry, found, group) or why
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
                    if file._translate(now) == server.value:
                        return old
        edits = entries.unwrap_entry(server.entry, found)
        return NO_ORIGINAL if edits is None else edits

    def _apply(self, server: ConfiguredServer, made: Sequence[Edit] | ConfiguredServer) -> str:
        """Make the edits of the file for one entry, and return the entry's new text."""
        if isinstance(made, ConfiguredServer):
            self._document.put(server, made.value, made.node.raw if made.node else "")
            return made.entry.raw
        after = entries.edit_entry(server.entry, made)
        if server.entry is server.node and self._dialect.is_spelled_usually(value := jsonc.scan(after, self.name).value):
            self._document.put(server, value, after)
            return after
        before, changed = self._translate(server.entry.raw), self._translate(after)
        # Unchanged values keep what the file has: they may be of a type that JSON lacks.
        has = server.value
        new = {key: has[key] if key in has and before.get(key) == value else value for key, value in changed.items()}
        self._document.put(server, new)
        return after

    def _translate(self, usual: str) -> dict[str, Any]:
        return self._dialect.from_usual(jsonc.scan(usual, self.name).value)


def list_servers(source: ConfigText) -> list[ConfiguredServer]:
    """List all entries, in order and in the usual spelling."""
    return ConfigFile(source, is_written=False).servers


def select_servers(found: Sequence[ConfiguredServer], name: str, only: Sequence[str]) -> list[ConfiguredServer]:
    known = {server.name for server in found}
    for wanted in only:
        if wanted not in known:
            names = ", ".join(map(escape_line, sorted(known))) or "none"
            raise SettingsError(f"{name} has no server {wanted!r}. Its servers: {names}.")
    return [server for server in found if not only or server.name in only]


def wrap(
    source: ConfigText, launch: Sequence[str], only: Sequence[str] = (), group: str = "", *, keeps_reader: bool = False
) -> Rewriting:
    """Wrap servers. With a `group`, an additional entry offers the retrieval tools for all, if the file can have one; without it,
    that entry goes, unless others need it (`keeps_reader`). If the file cannot be written, the error contains the lines to paste,
    without secrets."""
    try:
        return _wrap(ConfigFile(source), launch, only, group, keeps_reader=keeps_reader)
    except UnwritableFile as problem:
        file = ConfigFile(source, is_written=False)
        there = {server.name: server.value for server in file.servers}
        made = _wrap(file, launch, only, "", keeps_reader=True)
        outcomes = [outcome for outcome in made.outcomes if outcome.change == "wrapped"]
        if not outcomes:
            raise
        shown = "\n".join(_spell(outcome, there[outcome.server], source.dialect) for outcome in outcomes).rstrip()
        own = f" Where it says {HIDDEN}, keep your own value." if HIDDEN.strip('"') in shown else ""
        raise SettingsError(f"{problem} Paste these over the entries of the same names.{own}\n\n{shown}") from None


def _wrap(file: ConfigFile, launch: Sequence[str], only: Sequence[str], group: str, *, keeps_reader: bool) -> Rewriting:
    why, reader = file.find_obstacle(launch) if group else "", file.find_reader()
    group = "" if why else group and (reader or group)

    def change(server: ConfiguredServer) -> EntryChange:
        return file.wrap(server, launch, group, is_named=server.name in only, regroups=not why)

    changed, chosen = "", select_servers(file.servers, file.name, only)
    if not group and not why and not keeps_reader:
        changed = file.remove_reader(only)
    elif group and not reader and any(not isinstance(change(each), str) and not each.entry.get("cwd") for each in chosen):
        file.add_reader(group, launch)
        changed = group
    return replace(file.rewrite(only, "wrapped", change), group=changed, is_grouped=bool(group), ungrouped=why)


def _spell(outcome: RewriteOutcome, there: Mapping[str, Any], dialect: ConfigDialect) -> str:
    """Write the new entry. Unchanged values come from the existing entry, because we wrap entries as JSON, which has no dates."""
    entry = dialect.from_usual(jsonc.scan(mask(outcome.after), outcome.server).value)
    kept = {key: there[key] for key, value in entry.items() if key in there and _to_json(there[key]) == _to_json(value)}
    return dump_entry({**entry, **kept}, outcome.server, dialect)


def _to_json(value: Any) -> str:
    return json.dumps(value, default=str, sort_keys=True)


def unwrap(source: ConfigText, earlier: Sequence[str] = (), only: Sequence[str] = (), *, keeps_reader: bool = False) -> Rewriting:
    """Undo wrapping. `earlier` holds former texts of the file, newest first."""
    file, before = ConfigFile(source), list[ConfigFile]()
    for old in earlier:
        with suppress(SettingsError):
            before.append(ConfigFile(replace(source, text=old)))
    group = "" if keeps_reader else file.remove_reader(only)
    made = replace(file.rewrite(only, "unwrapped", lambda server: file.unwrap(server, before)), group=group)
    launches = {found.launch for server in file.servers if (found := recognize(server.name, server.entry))}
    names = [server.name for server in file.servers if not group or server.name != SERVER]
    for old in earlier if not only and len(launches) == 1 else ():
        with suppress(SettingsError):
            if makes(source.text, wrap(replace(source, text=old), launches.copy().pop(), names, group)):
                return replace(made, text=old)  # undoing each entry could leave other spaces and comments
    return made


def makes(text: str, again: Rewriting) -> bool:
    """Whether wrapping an earlier text makes this one. If that was wrapped itself, to return to it would be no undoing."""
    is_whole = not any(outcome.change == "regrouped" or outcome.reason == ALREADY_WRAPPED for outcome in again.outcomes)
    return again.text == text and is_whole and any(outcome.change == "wrapped" for outcome in again.outcomes)


def diff_entry(outcome: RewriteOutcome) -> list[str]:
    """Write a diff that shows the whole entry, without its secrets."""
    before, after = (mask(text).splitlines() for text in (outcome.before, outcome.after))
    lines = difflib.unified_diff(before, after, n=len(before), lineterm="")
    return list(lines)[3:]
