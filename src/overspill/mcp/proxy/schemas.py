"""Structured results: the reply for a stored result in the form of the tool's output schema, which is widened where it has to be.

Some clients show a model the structured content and nothing else, so all that the reply says is in it.
"""

from __future__ import annotations

from typing import Any, cast

from overspill.mcp.client.connection import Raw, as_mapping

KEPT_KEY = "overspill"
_ROOT_KEYS = ("$schema", "$id", "$defs", "definitions", "title", "description")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_UNMOVED_PREFIXES = ("#/$defs/", "#/definitions/")
_KEPT_SCHEMA: Raw = {"type": "object", "required": [KEPT_KEY], "properties": {KEPT_KEY: {"type": "object"}}}
_TEXT_KEY = "result"  # under which the SDKs put the text of a tool that returns one
_ANY_TEXT = frozenset(("type", "title", "description", "default"))  # keys of a schema that any text matches
_TEXT_SCHEMA_KEYS = _ANY_TEXT | {"$schema", "$id", "properties", "required", "additionalProperties"}


def widen_schema(tool: Raw) -> Raw:
    """Let a handle match `outputSchema`, because clients refuse a result that does not."""
    if not isinstance(tool.get("outputSchema"), dict):
        return tool
    schema = as_mapping(tool["outputSchema"])
    if _takes_text(schema):
        return tool
    if _refers_inside(schema):
        return {key: value for key, value in tool.items() if key != "outputSchema"}
    root = {key: schema[key] for key in _ROOT_KEYS if key in schema}
    rest = {key: value for key, value in schema.items() if key not in root}
    kind = {"type": "object"} if schema.get("type") == "object" else {}  # older clients require it at the root
    return {**tool, "outputSchema": {**root, **kind, "anyOf": [rest, _KEPT_SCHEMA]}}


def structure_reply(schema: object, text: str, handle: str | None) -> Raw | None:
    """What a reply says, as structured content of a tool with this output schema. None if it has no schema."""
    if not isinstance(schema, dict):
        return None
    if _takes_text(as_mapping(cast("object", schema))):
        return {_TEXT_KEY: text}
    return {KEPT_KEY: {"message": text, **({} if handle is None else {"handle": handle})}}


def _takes_text(schema: Raw) -> bool:
    """Whether it asks for an object with one text, any text, under `result`, and for nothing else."""
    properties = as_mapping(schema.get("properties"))
    value = as_mapping(properties.get(_TEXT_KEY))
    return (
        schema.get("type") == "object"
        and value.get("type") == "string"
        and len(properties) == 1
        and schema.get("required", []) in ([], [_TEXT_KEY])
        and all(key in _TEXT_SCHEMA_KEYS or key.startswith("x-") for key in schema)
        and _ANY_TEXT.issuperset(value)
    )


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
