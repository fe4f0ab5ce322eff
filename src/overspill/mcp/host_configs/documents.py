"""Change the entries of a client's file, in whichever format, and nothing else in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from overspill.errors import SettingsError
from overspill.mcp.host_configs.dialects import ConfigDialect
from overspill.text import jsonc
from overspill.text.humanize import escape_line
from overspill.text.jsonc import Edit, Node

_MAX_LISTED_KEYS = 10


class ConfigDocument(Protocol):
    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        """Plain values. What is not a mapping is left out."""
        ...

    def put(self, name: str, entry: Mapping[str, Any]) -> None: ...

    def text(self) -> str: ...


def missing_table_error(name: str, dialect: ConfigDialect, keys: list[str]) -> SettingsError:
    wanted = " or ".join(dialect.tables)
    return SettingsError(f"{name} has no servers: it has no key {wanted}. Its keys: {list_keys(keys)}.")


def list_keys(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _MAX_LISTED_KEYS} more" if len(keys) > _MAX_LISTED_KEYS else ""
    return ", ".join(map(escape_line, keys[:_MAX_LISTED_KEYS])) + more or "none"


class JsonDocument:
    def __init__(self, text: str, name: str, dialect: ConfigDialect) -> None:
        self._text = text
        self._edits: list[Edit] = []
        root = jsonc.scan(text, name)
        table = next((found for key in dialect.tables if (found := root.get(key)) and found.kind == "object"), None)
        if table is None:
            raise missing_table_error(name, dialect, root.names if root.kind == "object" else [])
        inner = table.get("servers")
        if inner and inner.kind == "object" and not inner.get("type"):  # as the second version of opencode has it
            table = inner
        for part in (root, table, *table.children):
            if part.kind == "object" and (twice := part.duplicate_key):
                raise SettingsError(f"{name} has the key {twice!r} twice. Keep one.")
        self._nodes: dict[str, Node] = {
            key.value: node for key, node in zip(table.keys, table.children, strict=True) if node.kind == "object"
        }

    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        return {name: node.value for name, node in self._nodes.items()}

    def put(self, name: str, entry: Mapping[str, Any]) -> None:
        node = self._nodes[name]
        line = self._text[self._text.rfind("\n", 0, node.start) + 1 : node.start]
        indent = line[: len(line) - len(line.lstrip())]
        step = "\t" if "\t" in indent else 2
        written = json.dumps(entry, indent=step, ensure_ascii=False).replace("\n", f"\n{indent}")
        self._edits.append(jsonc.replace(node, written if "\n" in node.raw else json.dumps(entry, ensure_ascii=False)))

    def node(self, name: str) -> Node:
        return self._nodes[name]

    def edit(self, edits: Sequence[Edit]) -> None:
        self._edits += edits

    def text(self) -> str:
        return jsonc.apply_edits(self._text, self._edits)


class TableDocument:
    """A file whose library changes the mapping of its servers in place."""

    def __init__(self, root: Mapping[str, Any], name: str, dialect: ConfigDialect) -> None:
        self._table: Any = next((root[key] for key in dialect.tables if isinstance(root.get(key), Mapping)), None)
        if self._table is None:
            raise missing_table_error(name, dialect, [str(key) for key in root])

    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        return {str(name): _plain(entry) for name, entry in self._table.items() if isinstance(entry, Mapping)}

    def put(self, name: str, entry: Mapping[str, Any]) -> None:
        _update(self._table[name], entry)


def _update(table: Any, entry: Mapping[str, Any]) -> None:
    """Change a mapping of a library in place, so that whatever stays equal keeps its form and its comments."""
    for key in [key for key in table if key not in entry]:
        del table[key]
    for key, value in entry.items():
        if key not in table or _plain(table[key]) != value:
            table[key] = value


def _plain(value: Any) -> Any:
    """As built-in types: libraries have their own, which remember how they were written."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[Any]", value)]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value
