"""Signatures of tools from JSON Schemas."""

from __future__ import annotations

import time
from typing import Any

import pytest

from overspill.schema.signatures import MAX_SIGNATURE_CHARS, write_signature


def takes(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({}, ""),
        (takes(a={"type": "string"}), "*, a: str = ..."),
        ({**takes(b={"type": "boolean"}, a={"type": "number"}), "required": ["a"]}, "*, a: float, b: bool = ..."),
        (takes(a={"enum": ["x", "y"], "default": "x"}), "*, a: Literal['x', 'y'] = 'x'"),
        (takes(a={"type": "array", "items": {"type": "integer"}}), "*, a: list[int] = ..."),
        (takes(a={"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}), "*, a: str | None = None"),
        (takes(a={"type": ["string", "integer"]}), "*, a: str | int = ..."),
        (
            takes(a={"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}),
            "*, a: TypedDict[{'b': str}] = ...",
        ),
        ({**takes(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"const": 3}}}, "*, a: Literal[3] = ..."),
        (takes(**{"odd-name": {"type": "string"}, "class": {}}), "**others"),
        ("not a schema", ""),
        ({"properties": {"a": 5}, "required": "a"}, "*, a: Any = ..."),
        (takes(a={"type": "object"}), "*, a: dict[str, Any] = ..."),
        (takes(a={"oneOf": [{"type": "string"}, {}]}), "*, a: Any = ..."),
        (takes(a={"type": "date"}), "*, a: Any = ..."),
        (takes(a={"enum": list(range(20))}), "*, a: Literal[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...] = ..."),
        (takes(a={"default": [1]}, b={"default": "x" * 100}), "*, a: Any = ..., b: Any = ..."),
        (takes(a={"$ref": "http://elsewhere/#/a"}, b={"$ref": "#/no/such"}), "*, a: Any = ..., b: Any = ..."),
        ({**takes(a={"$ref": "#/$defs/x~1y~0"}), "$defs": {"x/y~": {"type": "null"}}}, "*, a: None = ..."),
        (
            takes(**{f"p{n:02}": {"type": "null"} for n in range(41)}),
            ", ".join(["*", *(f"p{n:02}: None = ..." for n in range(40)), "**others"]),
        ),
    ],
)
def test_arguments_are_typed(schema: Any, arguments: str):
    assert write_signature("tool", schema).startswith(f"async def tool({arguments}) -> Any: ...")


def test_the_result_and_the_first_line_of_the_description_are_shown():
    returns = takes(rows={"type": "array"})
    assert write_signature("t", {}, returns, "Lists\trows.\nAnd more.") == (
        "async def t() -> TypedDict[{'rows': NotRequired[list[Any]]}]: ...  # Lists rows."
    )


def test_arguments_that_are_no_names_and_signatures_that_are_too_long_are_named():
    assert write_signature("t", {**takes(**{"a-b": {}, "c": {}}), "required": ["a-b"]}) == (
        "async def t(*, c: Any = ..., **others) -> Any: ...  # others: ['a-b']"
    )
    deep = takes(x=takes(**{f"name{n}": takes(**{f"inner{m}": {"type": "string"} for m in range(9)}) for n in range(30)}))
    assert write_signature("t", {**deep, "required": ["x"]}, None, "Long.") == (
        "async def t(**arguments) -> Any: ...  # Long.; 1 arguments; required: ['x']"
    )
    assert write_signature("t", {}, takes(**{f"f{n}": {} for n in range(41)})).count("NotRequired[Any]") == 40


def test_a_hostile_schema_takes_little_time_and_room():
    wide = {"type": "object", "properties": {f"p{n}": {"$ref": "#"} for n in range(100_000)}}
    endless: dict[str, Any] = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 1000}}}
    many = takes(a={"enum": ["x" * 1000] * 10_000}, **{f"n{n}" * 100: {} for n in range(50)})
    started = time.process_time()
    for schema in (wide, endless, takes(a=endless), many):
        assert len(write_signature("tool", schema, schema, "d" * 10**6)) <= 2 * MAX_SIGNATURE_CHARS + 100
    assert time.process_time() - started < 2
