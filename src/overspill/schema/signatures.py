"""Python signatures for tools, made from other authors' JSON Schemas: short, typed, and of limited size."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_MAX_DEPTH = 4
_MAX_TYPES = 300
"""The most types in one signature: a small schema can describe a type of any size."""
_MAX_FIELDS = 40
_MAX_CHOICES = 12
_MAX_VALUE_CHARS = 60
_MAX_LINE_CHARS = 300
MAX_SIGNATURE_CHARS = 2_000
_MAX_COMPACT_CHARS = 600


def write_signature(name: str, schema: object, returns: object = None, description: str = "", *, compact: bool = False) -> str:
    """`async def get(*, id: str, limit: int = 10) -> list[str]: ...  # First line`. Compact: `get(id: str, limit: int = 10)`."""
    root = as_object(schema)
    fields, more = _Types(root).list_fields(root, 0)
    plain = [field for field in fields if field.name.isidentifier() and not keyword.iskeyword(field.name)]
    odd = [field.name for field in fields if field not in plain]
    spelt = [f"{field.name}: {field.type}{field.default}" for field in plain]
    arguments = ", ".join([*(["*"] if spelt and not compact else []), *spelt, *(["**others"] if odd or more else [])])
    result = _Types(as_object(returns)).spell(returns, 0) if returns else "Any"
    form = "{name}({arguments})" if compact else "async def {name}({arguments}) -> {result}: ..."
    head = form.format(name=name, arguments=arguments, result=result)
    notes = [_first_line(description)]
    if len(head) > (_MAX_COMPACT_CHARS if compact else MAX_SIGNATURE_CHARS):
        head = form.format(name=name, arguments="**arguments", result="Any")
        notes.append(f"{len(fields) + more} arguments; required: {[field.name for field in fields if not field.default]!r}")
    elif odd:
        notes.append(f"others: {odd!r}")
    said = "; ".join(filter(None, notes))[:MAX_SIGNATURE_CHARS]
    return f"{head}  # {said}" if said else head


class _Field(NamedTuple):
    name: str
    type: str
    default: str
    """The default value as Python; empty if the argument is required."""


class _Types:
    """The types of one schema. References lead to other parts of `root`."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _MAX_TYPES

    def list_fields(self, schema: Mapping[str, Any], depth: int) -> tuple[list[_Field], int]:
        """The first fields, required ones before others, and how many more there are."""
        properties = as_object(schema.get("properties"))
        needed = {name for name in _as_list(schema.get("required")) if isinstance(name, str)}
        fields: list[_Field] = []
        for name in sorted(properties, key=lambda each: each not in needed)[:_MAX_FIELDS]:
            default = "" if name in needed else f" = {_spell_value(as_object(properties[name]).get('default', ...))}"
            fields.append(_Field(name, self.spell(properties[name], depth), default))
        return fields, len(properties) - len(fields)

    def spell(self, schema: object, depth: int) -> str:
        known, self._left = as_object(schema), self._left - 1
        if not known or depth > _MAX_DEPTH or self._left < 0:
            return "Any"
        if isinstance(reference := known.get("$ref"), str):
            return self.spell(self._follow(reference), depth + 1)
        choices = [known["const"]] if "const" in known else known.get("enum")
        if choices and isinstance(choices, list):
            spelt = [_spell_value(choice) for choice in cast("list[Any]", choices)[:_MAX_CHOICES]]
            return f"Literal[{', '.join(dict.fromkeys(spelt))}{', ...' * (len(spelt) < len(cast('list[Any]', choices)))}]"
        kind = known.get("type")
        ways = known.get("anyOf") or known.get("oneOf") or [{**known, "type": each} for each in _as_list(kind)]
        if ways and isinstance(ways, list):
            return _join(self.spell(way, depth + 1) for way in cast("list[Any]", ways)[:_MAX_CHOICES])
        if kind == "array":
            return f"list[{self.spell(known.get('items'), depth + 1)}]"
        if kind == "object" or "properties" in known:
            return self._spell_object(known, depth)
        return _TYPES.get(kind, "Any") if isinstance(kind, str) else "Any"

    def _spell_object(self, known: Mapping[str, Any], depth: int) -> str:
        fields, more = self.list_fields(known, depth + 1)
        if not fields:
            return "dict[str, Any]"
        spelt = [f"{field.name!r}: {f'NotRequired[{field.type}]' if field.default else field.type}" for field in fields]
        return f"TypedDict[{{{', '.join(spelt)}{', ...' * bool(more)}}}]"

    def _follow(self, reference: str) -> object:
        found: object = self._root if reference.startswith("#/") else None
        for token in reference[2:].split("/")[:8]:
            found = as_object(found).get(token.replace("~1", "/").replace("~0", "~"))
        return found


def _join(types: Iterable[str]) -> str:
    found = list(dict.fromkeys(types))
    return "Any" if "Any" in found else " | ".join(found)


def _spell_value(value: object) -> str:
    spelt = "..." if value is ... or isinstance(value, dict | list) else repr(value)
    return spelt if len(spelt) <= _MAX_VALUE_CHARS else "..."


def _first_line(text: object) -> str:
    lines = text.strip().splitlines() if isinstance(text, str) else []
    return " ".join(lines[0].split())[:_MAX_LINE_CHARS] if lines else ""


def as_object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict | Mapping) else {}


def _as_list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
