"""Wrap and unwrap the servers of a client that spells them in its own way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from overspill.errors import SettingsError
from overspill.mcp.host_configs import entries
from overspill.mcp.host_configs.dialects import ConfigDialect
from overspill.mcp.host_configs.documents import JsonDocument
from overspill.mcp.host_configs.opening import open_document
from overspill.mcp.host_configs.proxied import recognize
from overspill.text import jsonc
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
