"""Derives the JSON Schema of a tool's arguments from a struct: field names, types, limits, defaults and descriptions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct
from msgspec.structs import fields

_JSON_TYPES: dict[object, str] = {str: "string", int: "integer", bool: "boolean", float: "number", dict: "object", list: "array"}
_LIMITS = {"min_length": "minLength", "ge": "minimum"}


@cache
def describe_arguments(arguments: type[Struct]) -> dict[str, Any]:
    """The schema of a class. Do not change it: it is cached, because reading the class's hints takes long."""
    required = [field.encode_name for field in fields(arguments) if field.required]
    closed = {"additionalProperties": False} if arguments.__struct_config__.forbid_unknown_fields else {}
    return {"type": "object", **closed, "required": required, "properties": _properties(arguments)}


def describe_function(function: Callable[..., Any]) -> dict[str, Any]:
    """The schema of a function's arguments, from annotations that have JSON types. All others may be any value."""
    hints: dict[str, Any] = {}
    properties: dict[str, dict[str, Any]] = {}
    with suppress(NameError, TypeError):
        hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    for name in (each.name for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD):
        properties[name] = {}
        with suppress(KeyError, TypeError, ValueError):
            properties[name] = dict(_schema(hints[name]))
    required = [each.name for each in parameters if each.name in properties and each.default is inspect.Parameter.empty]
    return {"type": "object", "required": required, "properties": properties}


def _properties(arguments: type[Struct]) -> dict[str, Any]:
    hints = get_type_hints(arguments, include_extras=True)
    return {field.encode_name: dict(_schema(hints[field.name])) for field in fields(arguments)}


def _schema(hint: Any) -> Iterator[tuple[str, Any]]:
    """The keys and values of a type's schema, in the order in which models see them. A test finds types that are missing."""
    origin = get_origin(hint)
    if origin is Annotated:
        hint, meta = get_args(hint)
        assert isinstance(meta, Meta)
        yield from _schema(hint)
        yield from ((name, limit) for key, name in _LIMITS.items() if (limit := getattr(meta, key)) is not None)
        if meta.description is not None:
            yield "description", meta.description
    elif origin in (UnionType, Union):  # `null` means that an argument is not given, and is left out of the schema
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
        yield from _schema(hint)
    elif origin is Literal:
        yield from (("type", "string"), ("enum", list(get_args(hint))))
    elif origin is list:
        yield from (("type", "array"), ("items", dict(_schema(get_args(hint)[0]))))
    elif isinstance(hint, type) and issubclass(hint, Struct):
        yield from (("type", "object"), ("properties", _properties(hint)))
    else:
        yield "type", _JSON_TYPES[origin or hint]
