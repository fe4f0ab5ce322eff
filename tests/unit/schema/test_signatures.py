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
    ],
)
def test_arguments_are_typed(schema: Any, arguments: str):
    assert write_signature("tool", schema).startswith(f"async def tool({arguments}) -> Any: ...")


def test_the_result_and_the_first_line_of_the_description_are_shown():
    returns = takes(rows={"type": "array"})
    assert write_signature("t", {}, returns, "Lists\trows.\nAnd more.") == (
        "async def t() -> TypedDict[{'rows': NotRequired[list[Any]]}]: ...  # Lists rows."
    )


def test_a_hostile_schema_takes_little_time_and_room():
    wide = {"type": "object", "properties": {f"p{n}": {"$ref": "#"} for n in range(100_000)}}
    endless: dict[str, Any] = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 1000}}}
    many = takes(a={"enum": ["x" * 1000] * 10_000}, **{f"n{n}" * 100: {} for n in range(50)})
    started = time.process_time()
    for schema in (wide, endless, takes(a=endless), many):
        assert len(write_signature("tool", schema, schema, "d" * 10**6)) <= 2 * MAX_SIGNATURE_CHARS + 100
    assert time.process_time() - started < 2
