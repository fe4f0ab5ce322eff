"""Read a client's file, in any of the formats that clients use, and change only our entries in it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias, cast

from msgspec import Struct

from overspill.errors import MissingPackage, SettingsError
from overspill.mcp.host_configs.clients import USUAL, ConfigDialect
from overspill.text import jsonc
from overspill.text.humanize import escape_line
from overspill.text.jsonc import Edit, Node
from overspill.text.regex import regex

_MAX_LISTED_KEYS = 10
_PROJECTS = "projects"
_INDENTED_LIST = regex(r"(?m)^( *)[^\s#-][^\n]*:[ ]*\n\1( *)- ")


class UnwritableFile(SettingsError):
    """Writing the file again would change more than its entries."""


class ConfigText(Struct, frozen=True):
    """The text of a client's file. Errors call the file `name`."""

    text: str
    name: str
    dialect: ConfigDialect = USUAL


class ConfiguredServer(Struct, frozen=True):
    """A server in a client's file. In Claude Code, it may belong to one project; `project` is its folder."""

    name: str
    project: str
    value: Any
    """The entry as the file spells it."""
    node: Node | None
    """The entry's place in the text, if the file is JSON."""
    entry: Node
    """The entry in the usual spelling, which is `node` if the client uses that spelling itself."""


class JsonDocument:
    def __init__(self, source: ConfigText) -> None:
        self._text, is_usual = source.text, source.dialect.is_usual
        self._edits: list[Edit] = []
        root = jsonc.scan(source.text, source.name)
        tables = list((_find_tables_of_projects if is_usual else _find_table)(root, source.name, source.dialect))
        if not tables:
            raise _missing_table_error(source, root.names)
        self.servers = [
            _configure(source, key.value, project, node.value, node)
            for project, table in tables
            for key, node in zip(table.keys, table.children, strict=True)
            if is_usual or node.kind == "object"
        ]
        self.table = tables[0][1]
        allowed = root.get("mcp", "allowed")  # of Gemini CLI
        self.allowed: list[Any] | None = allowed.value if allowed and allowed.kind == "array" else None

    def put(self, server: ConfiguredServer, value: Mapping[str, Any], text: str = "") -> None:
        """Replace the entry of a server, by exactly this text if there is one."""
        node = server.node
        assert node is not None
        line = self._text[self._text.rfind("\n", 0, node.start) + 1 : node.start]
        indent = line[: len(line) - len(line.lstrip())]
        step = ("\t" if "\t" in indent else 2) if "\n" in node.raw else None
        written = json.dumps(value, indent=step, ensure_ascii=False).replace("\n", f"\n{indent}")
        self._edits.append(jsonc.replace(node, text or written))

    def add(self, name: str, value: Mapping[str, Any]) -> None:
        self._edits.append(jsonc.insert(self.table, [f"{jsonc.quote(name)}: {jsonc.write_like_first(self.table, value)}"]))

    def remove(self, name: str) -> None:
        self._edits += jsonc.remove(self.table, [self.table.names.index(name)])

    @property
    def text(self) -> str:
        return jsonc.apply_edits(self._text, self._edits)


def _find_table(root: Node, name: str, dialect: ConfigDialect) -> Iterator[tuple[str, Node]]:
    table = next((found for key in dialect.tables if (found := root.get(key)) and found.kind == "object"), None)
    if table is None:
        return
    inner = table.get(dialect.inner_table) if dialect.inner_table else None
    if inner and inner.kind == "object" and not inner.get("type"):  # a server with this name would have a type
        table = inner
    for part in (root, table, *table.children):
        if twice := part.duplicate_key:
            raise SettingsError(f"{name} has the key {twice!r} twice. Keep one.")
    yield "", table


def _find_tables_of_projects(root: Node, name: str, dialect: ConfigDialect) -> Iterator[tuple[str, Node]]:
    projects = root.get(_PROJECTS)
    places = zip(projects.keys, projects.children, strict=False) if projects else ()  # a list has no keys
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
    """TOML or YAML, whose library changes the mapping of servers in place and keeps everything else unchanged."""

    allowed: list[Any] | None = None

    def __init__(self, source: ConfigText) -> None:
        self._library = _Toml() if source.dialect.format == "toml" else _Yaml(source.text)
        self._root = self._library.parse(source.text, source.name)
        root = cast("Mapping[str, Any]", self._root if isinstance(self._root, Mapping) else {})
        self._table: Any = next((root[key] for key in source.dialect.tables if isinstance(root.get(key), Mapping)), None)
        if self._table is None:
            raise _missing_table_error(source, [str(key) for key in root])
        found = ((str(name), _plain(entry)) for name, entry in self._table.items() if isinstance(entry, Mapping))
        self.servers = [_configure(source, name, "", entry, None) for name, entry in found]

    def put(self, server: ConfiguredServer, value: Mapping[str, Any], _: str = "") -> None:
        """Change only values that differ, so that all others keep their form and their comments."""
        table = self._table[server.name]
        for key in [key for key in table if key not in value]:
            del table[key]
        for key, each in value.items():
            if key not in table or _plain(table[key]) != each:
                table[key] = each

    def add(self, name: str, value: Mapping[str, Any]) -> None:
        self._table[name] = value

    def remove(self, name: str) -> None:
        del self._table[name]

    @property
    def text(self) -> str:
        return self._library.dump(self._root)


ConfigDocument: TypeAlias = JsonDocument | TableDocument


def _configure(source: ConfigText, name: str, project: str, value: Any, node: Node | None) -> ConfiguredServer:
    if node is not None and source.dialect.is_spelled_usually(value):
        return ConfiguredServer(name, project, value, node, node)
    usual = json.dumps(source.dialect.to_usual(value), indent=2, default=str)  # TOML and YAML have dates
    return ConfiguredServer(name, project, value, node, jsonc.scan(usual, f"{name} in {source.name}"))


class _Toml:
    def __init__(self) -> None:
        self._library: Any = import_module("tomlkit")

    def parse(self, text: str, name: str) -> Any:
        try:
            return self._library.parse(text)
        except (self._library.exceptions.TOMLKitError, RecursionError) as problem:
            raise SettingsError(f"{name} is not valid TOML: {escape_line(str(problem))}.") from None

    def dump(self, value: Any) -> str:
        return self._library.dumps(value)


class _Yaml:
    """Reads and writes YAML in the style of the text `like`."""

    def __init__(self, like: str = "") -> None:
        self._library: Any = import_module("ruamel.yaml")
        self._yaml: Any = self._library.YAML()
        self._yaml.preserve_quotes = True
        self._yaml.width = 1 << 20  # unlimited
        if ": null" in like:  # most libraries write nulls like this, but ruamel.yaml writes an empty value
            self._yaml.Representer = type("SpelledNull", (self._library.RoundTripRepresenter,), {})
            self._yaml.Representer.add_representer(type(None), _spell_null)
        dash = len(found[2]) if (found := _INDENTED_LIST.search(like)) else 0
        self._yaml.indent(mapping=2, sequence=dash + 2, offset=dash)

    def parse(self, text: str, name: str) -> Any:
        try:
            return self._yaml.load(text)
        except (self._library.error.YAMLError, RecursionError, ValueError) as problem:
            first = str(problem).splitlines()
            raise SettingsError(f"{name} is not valid YAML: {' '.join(line.strip() for line in first[:4])}.") from None

    def dump(self, value: Any) -> str:
        written = io.StringIO()
        self._yaml.dump(value, written)
        return written.getvalue()


def _spell_null(writer: Any, _: None) -> Any:
    return writer.represent_scalar("tag:yaml.org,2002:null", "null")


def open_document(source: ConfigText, *, is_written: bool = True) -> ConfigDocument:
    """Parse a file. Raises SettingsError if that fails or has no servers, and UnwritableFile if it cannot be written but must."""
    if not source.text.strip():
        raise SettingsError(f"{source.name} is empty, so it has no servers.")
    if source.dialect.format == "json":
        return JsonDocument(source)
    try:
        document = TableDocument(source)
    except ImportError as missing:
        raise MissingPackage(f"Reading {source.name}", "clients") from missing
    if is_written and document.text != source.text:
        raise UnwritableFile(
            f"Writing {source.name} would change other places in it too. Nothing was written. Change its entries by hand."
        )
    return document


def dump_entry(entry: Mapping[str, Any], name: str, dialect: ConfigDialect) -> str:
    """Write one server's entry as lines for a file of this dialect."""
    return (_Toml() if dialect.format == "toml" else _Yaml()).dump({dialect.tables[0]: {name: entry}})


def _missing_table_error(source: ConfigText, keys: Sequence[str]) -> SettingsError:
    name, dialect = source.name, source.dialect
    others = [key for key in keys if not dialect.is_usual or key not in (*dialect.tables, _PROJECTS)]
    more = f" and {len(others) - _MAX_LISTED_KEYS} more" if len(others) > _MAX_LISTED_KEYS else ""
    listed = f" Its keys: {', '.join(map(escape_line, others[:_MAX_LISTED_KEYS])) + more or 'none'}."
    if not dialect.is_usual:
        return SettingsError(f"{name} has no servers: it has no key {' or '.join(dialect.tables)}.{listed}")
    return SettingsError(
        f"{name} has no servers: it has neither an mcpServers nor a servers key.{listed if others else ''} "
        "For a client with another kind of file, see `overspill wrap --print`."
    )


def _plain(value: Any) -> Any:
    """Convert to built-in types: the types of the libraries remember how they were written."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[Any]", value)]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value
