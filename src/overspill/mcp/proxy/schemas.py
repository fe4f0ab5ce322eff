"""A tool's promise about its structured results, widened so that a kept one keeps it too."""

from __future__ import annotations

from typing import Any, cast

from overspill.mcp.client.connection import Raw, as_mapping

KEPT_KEY = "overspill"
_ROOT_KEYS = ("$schema", "$id", "$defs", "definitions", "title", "description")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_UNMOVED_PREFIXES = ("#/$defs/", "#/definitions/")
_KEPT_SCHEMA: Raw = {"type": "object", "required": [KEPT_KEY], "properties": {KEPT_KEY: {"type": "object"}}}


def widen_schema(tool: Raw) -> Raw:
    """Clients refuse a result that does not match `outputSchema`, and a handle never would."""
    if not isinstance(tool.get("outputSchema"), dict):
        return tool
    schema = as_mapping(tool["outputSchema"])
    if _refers_inside(schema):
        return {key: value for key, value in tool.items() if key != "outputSchema"}
    root = {key: schema[key] for key in _ROOT_KEYS if key in schema}
    rest = {key: value for key, value in schema.items() if key not in root}
    kind = {"type": "object"} if schema.get("type") == "object" else {}  # older clients insist on it at the root
    return {**tool, "outputSchema": {**root, **kind, "anyOf": [rest, _KEPT_SCHEMA]}}


def _refers_inside(schema: Any) -> bool:
    """Whether it refers to a part of itself that would not be where it was. It may be nested deeper than we could follow it by
    calling ourselves, and then the client would be shown no tool at all."""
    parts: list[Any] = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts += cast("list[Any]", part)
            continue
        members = as_mapping(part)
        if any(_is_moved(members.get(key)) for key in _REFERENCES):
            return True
        parts += members.values()
    return False


def _is_moved(reference: object) -> bool:
    return isinstance(reference, str) and reference.startswith("#") and not reference.startswith(_UNMOVED_PREFIXES)
