"""The proxy's small decisions, one by one."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError

from overspill.mcp.client.config import ServerConfig
from overspill.mcp.proxy.options import ProxyOptions
from overspill.mcp.proxy.outputs import structure_reply, widen_schema
from overspill.mcp.proxy.versions import ask_for_input
from overspill.schema import fits_schema

pytestmark = pytest.mark.usefixtures("forked_workers")

KEPT = {"overspill": {"message": "kept", "handle": "session-1/2"}}
DAYS = {
    "type": "object",
    "properties": {"days": {"type": "array", "items": {"$ref": "#/$defs/Day"}}},
    "required": ["days"],
    "additionalProperties": False,
    "$defs": {"Day": {"type": "string"}},
}


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"type": "object", "required": ["a"]}, {"a": 1}, {"b": 1}),
        (DAYS, {"days": ["dry"]}, {"days": [1]}),
        ({"type": "array", "items": {"type": "integer"}}, [1, 2], ["x"]),
        ({"type": "integer"}, 5, "x"),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, None, 5),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "unevaluatedProperties": False}, {"a": "x"}, {"b": 1}),
    ],
)
def test_a_widened_schema_accepts_the_same_values_and_a_stored_result(schema: dict[str, Any], right: Any, wrong: Any) -> None:
    wide = widen_schema({"name": "t", "outputSchema": schema})["outputSchema"]
    validator = jsonschema.Draft202012Validator(wide)
    assert validator.is_valid(right)
    assert validator.is_valid(KEPT)
    assert not validator.is_valid(wrong)
    assert (wide.get("type") == "object") is (schema.get("type") == "object")


TEXT: dict[str, Any] = {"type": "object", "properties": {"result": {"title": "Result", "type": "string"}}, "required": ["result"]}


@pytest.mark.parametrize(
    "more", [{}, {"title": "echoOutput"}, {"x-fastmcp-wrap-result": True}, {"additionalProperties": False}, {"required": []}]
)
def test_a_schema_for_any_text_stays_and_its_text_is_what_the_reply_says(more: dict[str, Any]) -> None:
    tool = {"name": "t", "outputSchema": TEXT | more}
    assert widen_schema(tool) is tool
    assert structure_reply(TEXT | more, "all of it", "session-1/2") == {"result": "all of it"}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        DAYS,
        {**TEXT, "minProperties": 2},
        {**TEXT, "required": ["result", "more"]},
        {**TEXT, "properties": {**TEXT["properties"], "more": {}}},
        {**TEXT, "properties": {"result": {"type": "string", "enum": ["a", "b"]}}},
        {**TEXT, "properties": {"result": {"type": "string", "maxLength": 5}}},
        {**TEXT, "properties": {"result": {"type": ["string", "null"]}}},
        {**TEXT, "properties": {"result": {"type": "integer"}}},
        {**TEXT, "properties": {"result": True}},
        {**TEXT, "properties": [], "required": {}},
    ],
)
def test_any_other_schema_takes_a_reply_under_a_key_of_our_own(schema: dict[str, Any]) -> None:
    reply = structure_reply(schema, "all of it", "session-1/2")
    assert reply == {"overspill": {"message": "all of it", "handle": "session-1/2"}}
    wide = widen_schema({"name": "t", "outputSchema": schema})["outputSchema"]
    assert wide["anyOf"][1]["required"] == ["overspill"]


@pytest.mark.parametrize("schema", [None, True, []])
def test_without_an_output_schema_nothing_is_structured(schema: object) -> None:
    assert structure_reply(schema, "all of it", None) is None


@pytest.mark.parametrize("key", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize("reference", ["#", "#/properties/a", "#anchor"])
def test_a_schema_that_refers_to_parts_of_itself_is_left_out(key: str, reference: str) -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {"anyOf": [{key: reference}]}}}
    assert widen_schema({"name": "t", "x": 1, "outputSchema": schema}) == {"name": "t", "x": 1}


def test_a_schema_of_any_depth_is_widened() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5000):
        schema = {"properties": {"a": schema}}
    assert widen_schema({"name": "t", "outputSchema": schema})["outputSchema"]["anyOf"][0]["properties"] is schema["properties"]


@pytest.mark.parametrize("tool", [{"name": "t"}, {"name": "t", "outputSchema": None}, {"name": "t", "outputSchema": True}])
def test_a_tool_without_an_output_schema_is_unchanged(tool: dict[str, Any]) -> None:
    assert widen_schema(tool) == tool


async def test_a_server_that_keeps_asking_for_input_is_given_up() -> None:
    asked: list[dict[str, Any]] = []
    question = {"resultType": "input_required", "inputRequests": {"q": {"method": "roots/list"}}}

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        asked.append({"method": method, "params": params})
        return {"roots": []}

    async def again(params: dict[str, Any]) -> dict[str, Any]:
        assert params == {"name": "t", "inputResponses": {"q": {"roots": []}}}
        return question

    with pytest.raises(MCPError, match=r"The server asked for input 10 times without giving a result\."):
        await ask_for_input(question, {"name": "t"}, ask=ask, again=again)
    assert asked == [{"method": "roots/list", "params": {}}] * 10


def test_a_family_depends_on_the_caller_and_its_servers_and_reveals_neither() -> None:
    def family(principal: str = "local", **server: Any) -> str:
        return ProxyOptions({"s": ServerConfig("s", **server)}, {}).family(principal)

    url = "http://127.0.0.1/secret"
    assert family(url=url) == family(url=url)
    assert family(url=url, headers={"A": "new token"}) == family(url=url)
    assert (
        len(
            {
                family(url=url),
                family("other", url=url),
                family(url=url + "2"),
                family(command="a"),
                family(command="a", args=("b",)),
            }
        )
        == 5
    )
    assert "secret" not in family(url=url)
    assert family(command="a", args=("\udcff",)) != family(command="a", args=("\udcfe",))  # given in other than UTF-8


@pytest.mark.parametrize("schema", [True, {}, 3, None, {"$ref": "#/nowhere"}, {"properties": {"n": {"type": "number"}}}])
def test_a_matching_or_unusable_schema_finds_nothing_wrong(schema: object) -> None:
    assert fits_schema(schema)({"n": 1}) is None
