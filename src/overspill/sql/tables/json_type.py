"""What values a column of JSON has: how DuckDB is told, and how msgspec checks it."""

from __future__ import annotations

from typing import Annotated, Any, Optional, cast

import msgspec
from msgspec import Meta

_MAX_DEPTH = 20
_MAX_INSIDE = 3_000
_MAX_EXACT_INT = 1 << 53
_SCALARS: dict[type, str] = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}
_CHECKS: dict[str, Any] = {
    "BIGINT": Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)],
    "DOUBLE": Annotated[float, Meta(ge=-_MAX_EXACT_INT, le=_MAX_EXACT_INT)],  # beyond, whole numbers would be rounded
    "BOOLEAN": bool,
    "VARCHAR": str,
}


class JsonType:
    """The kinds of values that were added, and the types of what is inside them: the elements of lists are under ""."""

    __slots__ = ("_has_long", "count", "inside", "kinds")

    def __init__(self) -> None:
        self.kinds = set[str]()
        self.inside = dict[str, JsonType]()
        self.count = 0
        """Of the types inside, at all depths: DuckDB makes columns of them too."""
        self._has_long = False

    def add(self, value: object, depth: int = 0) -> None:
        if value is None:
            return
        if isinstance(value, bool | int | float | str):
            self.kinds.add(_SCALARS[type(value)])
            self._has_long |= isinstance(value, int) and abs(value) > _MAX_EXACT_INT
            return
        self.kinds.add("STRUCT" if isinstance(value, dict) else "LIST")
        if depth == _MAX_DEPTH or self.count > _MAX_INSIDE:
            self.kinds |= {"STRUCT", "LIST"}  # so that it is text
            return
        members: Any = cast("Any", value).items() if isinstance(value, dict) else (("", each) for each in cast("Any", value))
        for name, member in members:
            inside = self.inside.get(name)
            if inside is None:
                inside = self.inside[name] = JsonType()
                self.count += 1
            before = inside.count
            inside.add(member, depth + 1)
            self.count += inside.count - before

    @property
    def kind(self) -> str:
        """Of all values; "none" if there are none, and "mixed" if none suits all of them."""
        if self.kinds == {"BIGINT", "DOUBLE"} and not self._has_long:
            return "DOUBLE"
        return next(iter(self.kinds), "none") if len(self.kinds) < 2 else "mixed"

    def spell(self, *, is_flat: bool = False) -> str:
        """The type in SQL. Where values differ, it is text; if `is_flat`, also that of all that has parts."""
        match self.kind:
            case "LIST" if not is_flat:
                return f"{self.inside[''].spell() if self.inside else 'VARCHAR'}[]"
            case "STRUCT" if self.inside and not is_flat:
                return f"STRUCT({', '.join(f'{quote_name(name)} {inner.spell()}' for name, inner in self.inside.items())})"
            case kind:
                return kind if kind in _CHECKS else "VARCHAR"

    def check(self) -> Any:
        """The type for msgspec that accepts only such values, with no other members. Raises KeyError if they differ."""
        if self.kind == "none":
            return None
        if self.kind == "LIST":
            element = self.inside[""].check() if self.inside else None
            return list[Optional[element]]  # noqa: UP045
        if self.kind != "STRUCT":
            return _CHECKS[self.kind]
        if len({name.lower() for name in self.inside}) < len(self.inside) or "" in self.inside:
            raise KeyError("names that SQL cannot tell apart")
        fields = [(f"f{number}", Optional[inner.check()], None) for number, inner in enumerate(self.inside.values())]  # noqa: UP045
        renamed = {f"f{number}": name for number, name in enumerate(self.inside)}
        return msgspec.defstruct("Members", fields, rename=renamed, forbid_unknown_fields=True, gc=False)


def quote(text: str) -> str:
    """As a string of SQL."""
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
