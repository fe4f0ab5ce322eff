"""Change the entries of a client's file, in whichever format, and nothing else in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

from msgspec import Struct

from overspill.errors import SettingsError
from overspill.mcp.host_configs.dialects import ConfigDialect
from overspill.text import jsonc
from overspill.text.humanize import escape_line
from overspill.text.jsonc import Edit, Node

_MAX_LISTED_KEYS = 10
_PROJECTS = "projects"


class WrittenEntry(Struct, frozen=True):
    """A server's entry as the file has it. In Claude Code, it may belong to one project; `project` is its folder."""

    name: str
    project: str
    value: Any
    node: Node | None = None
    """Where it is in JSON."""


class ConfigDocument(Protocol):
    @property
    def entries(self) -> Sequence[WrittenEntry]:
        """With plain values."""
        ...

    def put(self, entry: WrittenEntry, value: Mapping[str, Any]) -> list[Edit]:
        """Write another value in its place, now or with the edits that are returned."""
        ...

    def text(self, edits: Sequence[Edit]) -> str: ...


def list_keys(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _MAX_LISTED_KEYS} more" if len(keys) > _MAX_LISTED_KEYS else ""
    return ", ".join(map(escape_line, keys[:_MAX_LISTED_KEYS])) + more or "none"


def _missing_table_error(name: str, dialect: ConfigDialect, keys: Sequence[str]) -> SettingsError:
    if not dialect.is_usual:
        wanted = " or ".join(dialect.tables)
        return SettingsError(f"{name} has no servers: it has no key {wanted}. Its keys: {list_keys(keys)}.")
    others = [key for key in keys if key not in (*dialect.tables, _PROJECTS)]
    return SettingsError(
        f"{name} has no servers: it has neither an mcpServers nor a servers key."
        f"{f' Its keys: {list_keys(others)}.' if others else ''} "
        "For a client with another kind of file, see `overspill wrap --print`."
    )


class JsonDocument:
    def __init__(self, text: str, name: str, dialect: ConfigDialect) -> None:
        self._text = text
        root = jsonc.scan(text, name)
        find_tables = _find_tables_of_projects if dialect.is_usual else _find_table
        tables = list(find_tables(root, name, dialect))
        if not tables:
            raise _missing_table_error(name, dialect, root.names if root.kind == "object" else [])
        self.entries = [
            WrittenEntry(key.value, project, node.value, node)
            for project, table in tables
            for key, node in zip(table.keys, table.children, strict=True)
            if dialect.is_usual or node.kind == "object"
        ]

    def put(self, entry: WrittenEntry, value: Mapping[str, Any]) -> list[Edit]:
        node = entry.node
        assert node is not None
        line = self._text[self._text.rfind("\n", 0, node.start) + 1 : node.start]
        indent = line[: len(line) - len(line.lstrip())]
        step = "\t" if "\t" in indent else 2
        written = json.dumps(value, indent=step, ensure_ascii=False).replace("\n", f"\n{indent}")
        return [jsonc.replace(node, written if "\n" in node.raw else json.dumps(value, ensure_ascii=False))]

    def text(self, edits: Sequence[Edit]) -> str:
        return jsonc.apply_edits(self._text, edits)


def _find_table(root: Node, name: str, dialect: ConfigDialect) -> Iterator[tuple[str, Node]]:
    table = next((found for key in dialect.tables if (found := root.get(key)) and found.kind == "object"), None)
    if table is None:
        return
    inner = table.get("servers")
    if inner and inner.kind == "object" and not inner.get("type"):  # as the second version of opencode has it
        table = inner
    for part in (root, table, *table.children):
        if part.kind == "object" and (twice := part.duplicate_key):
            raise SettingsError(f"{name} has the key {twice!r} twice. Keep one.")
    yield "", table


def _find_tables_of_projects(root: Node, name: str, dialect: ConfigDialect) -> Iterator[tuple[str, Node]]:
    projects = root.get(_PROJECTS)
    places = zip(projects.keys, projects.children, strict=True) if projects else ()
    for project, place in [("", root), *((key.value, child) for key, child in places)]:
        for key in (*dialect.tables, _PROJECTS):
            if place.names.count(key) > 1:
                raise SettingsError(f"{name} has the key {key!r} twice. Keep one.")
        for key in dialect.tables if place is root else dialect.tables[:1]:
            table = place.get(key)
            if table and table.kind == "object":
                if table.duplicate_key:
                    raise SettingsError(f"{name} has the server {table.duplicate_key!r} twice. Keep one.")
                yield project, table


class TableDocument:
    """A file whose library changes the mapping of its servers in place."""

    def __init__(self, root: Mapping[str, Any], name: str, dialect: ConfigDialect) -> None:
        self._table: Any = next((root[key] for key in dialect.tables if isinstance(root.get(key), Mapping)), None)
        if self._table is None:
            raise _missing_table_error(name, dialect, [str(key) for key in root])
        self.entries = [
            WrittenEntry(str(name), "", _plain(entry)) for name, entry in self._table.items() if isinstance(entry, Mapping)
        ]

    def put(self, entry: WrittenEntry, value: Mapping[str, Any]) -> list[Edit]:
        _update(self._table[entry.name], value)
        return []


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
