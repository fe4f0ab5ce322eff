"""Open a client's file in whichever format it has. The libraries for TOML and YAML are imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from overspill.errors import MissingPackage, SettingsError
from overspill.mcp.host_configs.dialects import Dialect
from overspill.mcp.host_configs.documents import Document, JsonDocument


def open_document(text: str, name: str, dialect: Dialect) -> Document:
    """Raises SettingsError if it cannot be read, has no servers, or cannot be written again without other changes."""
    if not text.strip():
        raise SettingsError(f"{name} is empty, so it has no servers.")
    if dialect.format == "json":
        return JsonDocument(text, name, dialect)
    try:
        module = _load_toml() if dialect.format == "toml" else _load_yaml()
    except ImportError as missing:
        raise MissingPackage(f"Reading {name}", "clients") from missing
    document: Document = module.open_document(text, name, dialect)
    if document.text() != text:
        raise SettingsError(
            f"{name} is written in a form that would change in other places too. Nothing was written. "
            "Change its entries by hand: `overspill wrap --print` shows what to write."
        )
    return document


def _load_toml() -> ModuleType:
    return import_module("overspill.mcp.host_configs.toml_documents")


def _load_yaml() -> ModuleType:
    return import_module("overspill.mcp.host_configs.yaml_documents")
