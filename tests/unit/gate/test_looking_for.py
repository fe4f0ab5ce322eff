"""The argument that asks a model what it is looking for: where it is added, and how it is taken off."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from overspill import Settings
from overspill.gate.intent import LOOKING_FOR, add_argument, asks, take_off

ASK = Settings(intent="ask")
PLAIN: dict[str, Any] = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


@pytest.mark.parametrize(
    "more", [{}, {"additionalProperties": False}, {"additionalProperties": True}, {"title": "T", "$defs": {}}]
)
def test_it_is_added_last_and_every_call_that_was_valid_still_is(more: dict[str, Any]) -> None:
    schema = PLAIN | more
    assert asks(ASK, schema)
    asking = add_argument(schema)
    assert list(asking["properties"]) == ["q", LOOKING_FOR]
    assert asking["properties"][LOOKING_FOR] == {
        "type": "string",
        "description": "What you need from the result, then in parentheses other words for it; "
        "used only if the result is too large.",
    }
    assert {**asking, "properties": schema["properties"]} == schema
    assert list(schema["properties"]) == ["q"]
    validator = jsonschema.Draft202012Validator(asking)
    assert validator.is_valid({"q": "a"})
    assert validator.is_valid({"q": "a", LOOKING_FOR: "ids"})


@pytest.mark.parametrize(
    "schema",
    [
        {**PLAIN, "properties": {LOOKING_FOR: {"type": "integer"}}},
        {**PLAIN, "required": [LOOKING_FOR]},
        {**PLAIN, "patternProperties": {"^l": {"type": "integer"}}},
        {**PLAIN, "additionalProperties": {"type": "integer"}},
        {**PLAIN, "unevaluatedProperties": False},
        {**PLAIN, "propertyNames": {"maxLength": 1}},
        {**PLAIN, "maxProperties": 1},
        {**PLAIN, "minProperties": 1},
        {**PLAIN, "allOf": [{"additionalProperties": False}]},
        {**PLAIN, "anyOf": [{"required": ["q"]}]},
        {**PLAIN, "$ref": "#/$defs/a"},
        {**PLAIN, "not": {"required": [LOOKING_FOR]}},
        {"type": "string"},
        {"type": ["object", "null"]},
        {"type": "object", "properties": []},
        {"type": "object", "required": "q"},
        True,
        None,
    ],
)
def test_a_schema_that_it_could_contradict_is_left_alone(schema: Any) -> None:
    assert not asks(ASK, schema)


def test_it_is_left_off_in_strict_mode_and_where_the_settings_do_not_want_it() -> None:
    assert not asks(ASK, PLAIN, strict=True)
    assert not asks(Settings(), PLAIN)
    assert not asks(Settings(intent="ask", servers={"s": {"off": True}}).for_tool("t", "s"), PLAIN)


@pytest.mark.parametrize(("value", "said"), [("ids", "ids"), ("", ""), (None, ""), (5, ""), ({"a": 1}, "")])
def test_it_is_taken_off_whatever_it_holds(value: Any, said: str) -> None:
    assert take_off({"q": "a", LOOKING_FOR: value}) == ({"q": "a"}, said)


def test_arguments_without_it_stay() -> None:
    assert take_off({"q": "a"}) == ({"q": "a"}, "")
