"""The argument `looking_for`: added to the schemas of tools that a model sees, and taken off again before a tool is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from overspill.lexical.words import word_set
from overspill.settings import Settings

NAME = "looking_for"
_DESCRIPTION = "What you need from the result, then in parentheses other words for it; used only if the result is too large."
_PLAIN_KEYWORDS = word_set(
    """$schema $id $defs $comment additionalProperties default definitions deprecated description examples properties readOnly
    required title type writeOnly"""
)
"""Beside these, an argument more can never contradict a schema. Other keywords may count, name or exclude arguments."""


def asks(settings: Settings, schema: object, *, strict: object = None) -> bool:
    """Whether the argument is added to this schema: the settings want it, and no client that checks arguments would refuse it.

    `strict`: whether the definition is for a provider's strict mode, which has no optional arguments.
    """
    if settings.intent != "ask" or settings.off or strict or not isinstance(schema, Mapping):
        return False
    known = cast("Mapping[str, Any]", schema)
    properties, required = known.get("properties", {}), known.get("required", [])
    return (
        known.get("type") == "object"
        and isinstance(properties, Mapping)
        and isinstance(required, list)
        and NAME not in properties
        and NAME not in required
        and isinstance(known.get("additionalProperties", True), bool)
        and _PLAIN_KEYWORDS.issuperset(known)
    )


def add_argument(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with the argument, after all others."""
    own = {NAME: {"type": "string", "description": _DESCRIPTION}}
    return {**schema, "properties": {**schema.get("properties", {}), **own}}


def take_off(args: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The arguments without it, and what it says. A value that is no string says nothing."""
    rest = {name: value for name, value in args.items() if name != NAME}
    said = args.get(NAME)
    return rest, said if isinstance(said, str) else ""
