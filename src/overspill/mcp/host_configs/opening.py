"""Open a client's file in whichever format it has. The libraries for TOML and YAML are imported when they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from overspill.errors import MissingPackage, SettingsError
from overspill.mcp.host_configs.dialects import ConfigDialect
from overspill.mcp.host_configs.documents import ConfigDocument, JsonDocument


class UnwritableFile(SettingsError):
    """Writing the file again would change more than its entries."""


def open_document(text: str, name: str, dialect: ConfigDialect, *, is_written: bool = True) -> ConfigDocument:
    """Raises SettingsError if it cannot be read or has no servers, and UnwritableFile if it is to be written and cannot be."""
    if not text.strip():
        raise SettingsError(f"{name} is empty, so it has no servers.")
    if dialect.format == "json":
        return JsonDocument(text, name, dialect)
    document: ConfigDocument = _load(dialect, name).Document(text, name, dialect)
    if is_written and document.text(()) != text:
        raise UnwritableFile(
            f"{name} is written in a form that would change in other places too. Nothing was written. Change its entries by hand."
        )
    return document


def dump_entry(entry: Mapping[str, Any], name: str, dialect: ConfigDialect) -> str:
    """The lines of one server, as a file of this dialect has them."""
    return _load(dialect, name).dump({dialect.tables[0]: {name: entry}})


def _load(dialect: ConfigDialect, name: str) -> ModuleType:
    try:
        if dialect.format == "toml":
            return import_module("overspill.mcp.host_configs.toml_documents")
        return import_module("overspill.mcp.host_configs.yaml_documents")
    except ImportError as missing:
        raise MissingPackage(f"Reading {name}", "clients") from missing
