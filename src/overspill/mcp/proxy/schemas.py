"""Widen a tool's output schema so that the reply for a stored result matches it, too."""

from __future__ import annotations

from typing import Any, cast

from overspill.mcp.client.connection import Raw, as_mapping

KEPT_KEY = "overspill"
_ROOT_KEYS = ("$schema", "$id", "$defs", "definitions", "title", "description")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_UNMOVED_PREFIXES = ("#/$defs/", "#/definitions/")
_KEPT_SCHEMA: Raw = {"type": "object", "required": [KEPT_KEY], "properties": {KEPT_KEY: {"type": "object"}}}


def widen_schema(tool: Raw) -> Raw:
    """Let a handle match `outputSchema`, because clients refuse a result that does not."""
    if not isinstance(tool.get("outputSchema"), dict):
        return tool
    schema = as_mapping(tool["outputSchema"])
    if _refers_inside(schema):
        return {key: value for key, value in tool.items() if key != "outputSchema"}
    root = {key: schema[key] for key in _ROOT_KEYS if key in schema}
    rest = {key: value for key, value in schema.items() if key not in root}
    kind = {"type": "object"} if schema.get("type") == "object" else {}  # older clients require it at the root
    return {**tool, "outputSchema": {**root, **kind, "anyOf": [rest, _KEPT_SCHEMA]}}


def _refers_inside(schema: Any) -> bool:
    """Whether it refers to a part of itself that would move. Not recursive, because it may be nested to any depth."""
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
