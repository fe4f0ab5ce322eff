"""The keys of a section, derived from the annotations, for the code that reads, writes and documents them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from msgspec import Struct, inspect

from overspill.settings.keys import Key
from overspill.text.urls import mask_password

Path: TypeAlias = tuple[str, ...]
"""Field names from the top to a value. Below `overrides` and `servers`, one step is a tool's or server's name."""

Values: TypeAlias = dict[Path, Any]
"""Flat settings: layers merge by overwriting single values."""


class Field(Struct, frozen=True):
    """One key of a section."""

    name: str
    spelling: str
    type: Any
    key: Key
    section: type[Struct] | None = None
    """The keys below it, if it is not a value itself."""
    named: bool = False
    """Whether it is a mapping from names to such sections."""

    @property
    def spellings(self) -> set[str]:
        plain = self.name.rstrip("_")
        return {self.spelling, self.name, plain, _camel_case(plain)}


@cache
def fields(section: type) -> tuple[Field, ...]:
    hints = get_type_hints(section, include_extras=True)
    return tuple(_field(name, hint) for name, hint in hints.items() if get_origin(hint) is Annotated)


@cache
def by_spelling(section: type) -> Mapping[str, Field]:
    return {spelling: field for field in fields(section) for spelling in sorted(field.spellings)}


def flatten(section: type, holder: object, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value of an object with that section's keys. Overrides yield only what they set."""
    for field in fields(section):
        here = (*path, field.name)
        if field.section is None:
            yield here, getattr(holder, field.name)
        # A class, which is passed for its defaults, does not have sections as attributes.
        elif field.named:
            for name, entry in getattr(holder, field.name, {}).items():
                yield from ((at, value) for at, value in flatten(field.section, entry, (*here, name)) if value is not None)
        else:
            yield from flatten(field.section, getattr(holder, field.name, field.section()), here)


def dotted_path(section: type, path: Path) -> str:
    """The path as a file spells it: `toolOutput.maxChunks`."""
    field = by_spelling(section)[path[0]]
    rest = path[1:]
    name = (rest[0],) if field.named else ()
    below = (dotted_path(field.section, rest[len(name) :]),) if field.section else ()
    return ".".join((field.spelling, *name, *below))


def keys_along(section: type, path: Path) -> Iterator[Key]:
    """The keys of the sections around a path, and the key at its end."""
    field = by_spelling(section)[path[0]]
    yield field.key
    rest = path[2:] if field.named else path[1:]
    if field.section and rest:
        yield from keys_along(field.section, rest)


def visible(section: type, path: Path, value: Any) -> Any:
    """The parts of the value that may be shown: an address without its password, and only the names of a private mapping."""
    if isinstance(value, str):
        return mask_password(value)
    return sorted(value) if value and by_spelling(section)[path[0]].key.private else value


def describe_type(type_: Any) -> str:
    """Describe in words what a value of that type may be."""
    if get_origin(type_) is Literal:
        names: tuple[str, ...] = get_args(type_)
        return ("one of " if len(names) > 1 else "") + ", ".join(names)
    match inspect.type_info(type_):
        case inspect.UnionType():
            return ", or ".join("null" if each is type(None) else describe_type(each) for each in get_args(type_))
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() as number:
            return f"a whole number {_range(number.ge, number.gt, number.le)}"
        case inspect.FloatType() as number:
            return f"a number {_range(number.ge, number.gt, number.le)}"
        case inspect.VarTupleType():
            return f"a list, each item {describe_type(get_args(type_)[0])}"
        case inspect.DictType():
            return "a mapping from names to values"
        case inspect.StructType() as struct:
            return f"a mapping with {' and '.join(field.encode_name for field in struct.fields)}"
        case _:
            return "a non-empty string"


def _range(at_least: float | None, above: float | None, at_most: float | None) -> str:
    if above is not None:
        return f"above {above:g}"
    return f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"


def _field(name: str, hint: Any) -> Field:
    type_, key = hint.__origin__, hint.__metadata__[-1]
    # Annotated flattens: the constraints of an annotated number come before the Key and belong to the type.
    if constraints := hint.__metadata__[:-1]:
        type_ = Annotated[type_, *constraints]
    mapped = get_origin(type_) is Mapping
    inner: Any = get_args(type_)[1] if mapped else type_
    section = inner if isinstance(inner, type) and issubclass(inner, Struct) else None
    return Field(name, key.spelling or _camel_case(name.rstrip("_")), type_, key, section, mapped and section is not None)


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
