"""A client's file in TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from overspill.errors import SettingsError
from overspill.mcp.host_configs.dialects import ConfigDialect
from overspill.mcp.host_configs.documents import TableDocument
from overspill.text.humanize import escape_line
from overspill.text.jsonc import Edit


class Document(TableDocument):
    def __init__(self, text: str, name: str, dialect: ConfigDialect) -> None:
        try:
            self._root: Any = tomlkit.parse(text)
        except (TOMLKitError, RecursionError) as problem:
            raise SettingsError(f"{name} is not valid TOML: {escape_line(str(problem))}.") from None
        super().__init__(self._root, name, dialect)

    def text(self, _: Sequence[Edit]) -> str:
        return tomlkit.dumps(self._root)


def dump(value: Mapping[str, Any]) -> str:
    return tomlkit.dumps(value)
