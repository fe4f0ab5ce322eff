"""A client's file in TOML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from overspill.errors import SettingsError
from overspill.mcp.host_configs.dialects import Dialect
from overspill.mcp.host_configs.documents import missing_table_error, plain, update
from overspill.text.humanize import escape_line


class TomlDocument:
    def __init__(self, text: str, name: str, dialect: Dialect) -> None:
        try:
            self._root: Any = tomlkit.parse(text)
        except (TOMLKitError, RecursionError) as problem:
            raise SettingsError(f"{name} is not valid TOML: {escape_line(str(problem))}.") from None
        self._table: Any = next((self._root[key] for key in dialect.tables if isinstance(self._root.get(key), Mapping)), None)
        if self._table is None:
            raise missing_table_error(name, dialect, [str(key) for key in self._root])

    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        return {str(name): plain(entry) for name, entry in self._table.items() if isinstance(entry, Mapping)}

    def put(self, name: str, entry: Mapping[str, Any]) -> None:
        update(self._table[name], entry)

    def text(self) -> str:
        return tomlkit.dumps(self._root)


def open_document(text: str, name: str, dialect: Dialect) -> TomlDocument:
    return TomlDocument(text, name, dialect)


def dump(value: Mapping[str, Any]) -> str:
    return tomlkit.dumps(value)
