"""The JSON Schema of a tool's parameters, derived from the struct that holds its arguments."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct
from msgspec.structs import fields

_JSON_TYPES: dict[object, str] = {str: "string", int: "integer", bool: "boolean"}


def parameters_schema(arguments: type[Struct]) -> dict[str, Any]:
    required = [field.encode_name for field in fields(arguments) if field.required]
    return {"type": "object", "additionalProperties": False, "required": required, "properties": _properties(arguments)}


def _properties(arguments: type[Struct]) -> dict[str, Any]:
    hints = get_type_hints(arguments, include_extras=True)
    return {field.encode_name: dict(_schema(hints[field.name])) for field in fields(arguments)}


def _schema(hint: Any) -> Iterator[tuple[str, Any]]:
    """Keys and values in the order in which models see them. A test fails for a type that has no JSON type here."""
    origin = get_origin(hint)
    if origin is Annotated:
        hint, meta = get_args(hint)
        assert isinstance(meta, Meta)
        yield from _schema(hint)
        if meta.min_length is not None:
            yield "minLength", meta.min_length
        if meta.description is not None:
            yield "description", meta.description
    elif origin is UnionType:  # `null` means the same as not given, and is left out of the schema
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
        yield from _schema(hint)
    elif origin is Literal:
        yield from (("type", "string"), ("enum", list(get_args(hint))))
    elif isinstance(hint, type) and issubclass(hint, Struct):
        yield from (("type", "object"), ("properties", _properties(hint)))
    else:
        yield "type", _JSON_TYPES[hint]
