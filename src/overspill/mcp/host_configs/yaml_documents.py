"""A client's file in YAML."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.representer import RoundTripRepresenter

from overspill.errors import SettingsError
from overspill.mcp.host_configs.dialects import ConfigDialect
from overspill.mcp.host_configs.documents import TableDocument
from overspill.text.jsonc import Edit

_UNLIMITED_WIDTH = 1 << 20
_INDENTED_LIST = re.compile(r"^( *)[^\s#-][^\n]*:[ ]*\n\1( *)- ", re.MULTILINE)


class _SpelledNull(RoundTripRepresenter):
    """Writes `null` where most libraries write it. Without this, nothing is written there."""


def _spell_null(writer: Any, _: None) -> Any:
    return writer.represent_scalar("tag:yaml.org,2002:null", "null")


cast("Any", _SpelledNull).add_representer(type(None), _spell_null)


class Document(TableDocument):
    def __init__(self, text: str, name: str, dialect: ConfigDialect) -> None:
        self._yaml: Any = YAML()
        self._yaml.preserve_quotes = True
        self._yaml.width = _UNLIMITED_WIDTH
        if ": null" in text:
            self._yaml.Representer = _SpelledNull
        dash = len(found[2]) if (found := _INDENTED_LIST.search(text)) else 0
        self._yaml.indent(mapping=2, sequence=dash + 2, offset=dash)
        try:
            self._root: Any = self._yaml.load(text)
        except (YAMLError, RecursionError, ValueError) as problem:
            first = str(problem).splitlines()
            raise SettingsError(f"{name} is not valid YAML: {' '.join(line.strip() for line in first[:4])}.") from None
        super().__init__(cast("Mapping[str, Any]", self._root if isinstance(self._root, Mapping) else {}), name, dialect)

    def text(self, _: Sequence[Edit]) -> str:
        written = io.StringIO()
        self._yaml.dump(self._root, written)
        return written.getvalue()


def dump(value: Mapping[str, Any]) -> str:
    written = io.StringIO()
    writer: Any = YAML()
    writer.width = _UNLIMITED_WIDTH
    writer.dump(value, written)
    return written.getvalue()
