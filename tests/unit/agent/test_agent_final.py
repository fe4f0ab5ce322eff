"""Final reports: by call, in their wrapper, in plain words; checked against their format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from overspill.agent import internal
from overspill.agent.file import OutputKeys
from overspill.agent.report import Report, ReportCheck
from overspill.errors import BadRequest, SettingsError
from overspill.models.protocol import Response
from overspill.types import ToolCall

pytestmark = pytest.mark.usefixtures("forked_workers")

SCHEMA = {"type": "object", "required": ["count"], "properties": {"count": {"type": "integer"}}}


def reports(format: Any = "markdown", schema: Any = None) -> ReportCheck:
    return ReportCheck(OutputKeys(format, schema))


def handed_in(made: ReportCheck, response: Response, *, plain: bool = False) -> Report | None:
    for call in made.parse_report(response, plain=plain).calls:
        if call.name == "agent__final_report":
            made.submit(call.args)
    return made.accepted


def wrapper(made: ReportCheck, text: str) -> str:
    return f'<ai-agent-{made.nonce}-FINAL format="markdown">{text}</ai-agent-{made.nonce}-FINAL>'


def test_a_report_is_submitted_by_a_call() -> None:
    made = reports()
    made.submit({"content": "# Done"})
    assert made.accepted == Report("markdown", "# Done", "tool")


def test_a_wrapper_anywhere_in_the_text_counts_as_that_call() -> None:
    made = reports()
    response = Response(f"<think>hm</think> So: {wrapper(made, 'Done.')} Bye.", (ToolCall("1", "search"),))
    understood = made.parse_report(response, plain=False)
    assert [call.name for call in understood.calls] == ["search", "agent__final_report"]
    assert handed_in(made, response) == Report("markdown", "Done.", "wrapper")


@pytest.mark.parametrize("text", ["Done.", '<ai-agent-0000-FINAL format="text">Done.</ai-agent-0000-FINAL>', "", "  "])
def test_text_without_its_wrapper_is_not_a_report(text: str) -> None:
    assert handed_in(reports(), Response(text)) is None


def test_a_wrapper_that_only_repeats_the_instructions_is_not_a_report() -> None:
    made = reports()
    assert handed_in(made, Response(wrapper(made, "\nyour answer in your own words\n"))) is None


def test_plain_text_is_a_report_only_on_request() -> None:
    assert handed_in(reports(), Response(" Done. "), plain=True) == Report("markdown", "Done.", "text")
    assert handed_in(reports(), Response("x", (ToolCall("1", "search"),)), plain=True) is None


def test_the_last_report_counts() -> None:
    made = reports("text")
    made.submit({"content": "first"})
    made.submit({"content": "second"})
    assert made.accepted == Report("text", "second", "tool")


@pytest.mark.parametrize("content", [{"count": 3}, '{"count": 3}'])
def test_a_json_report_may_be_a_value_or_its_text(content: Any) -> None:
    made = reports("json", SCHEMA)
    made.submit({"content": content})
    assert made.accepted is not None
    assert (made.accepted.value, json.loads(made.accepted.content)) == ({"count": 3}, {"count": 3})


def test_a_value_becomes_text_if_the_format_is_text() -> None:
    made = reports("text")
    made.submit({"content": {"count": 3}})
    assert made.accepted is not None
    assert made.accepted.value == '{\n  "count": 3\n}'


@pytest.mark.parametrize(
    ("format", "schema", "content", "message"),
    [
        ("markdown", None, " ", "Your final report was not accepted: it is empty."),
        ("markdown", None, None, "Your final report was not accepted: it is empty."),
        (
            "json", None, "three",
            "Your final report was not accepted: it is not JSON (Expecting value: line 1 column 1 (char 0)). "
            "Submit JSON and nothing else.",
        ),
        (
            "json", SCHEMA, {"count": "three"},
            "Your final report was not accepted: it does not match its JSON Schema: $.count: 'three' is not of type 'integer'.",
        ),
        (
            "json", SCHEMA, "{}",
            "Your final report was not accepted: it does not match its JSON Schema: $: 'count' is a required property.",
        ),
    ],
)  # fmt: skip
def test_a_report_in_the_wrong_form_is_not_accepted(format: Any, schema: Any, content: Any, message: str) -> None:
    made = reports(format, schema)
    with pytest.raises(BadRequest) as error:
        made.submit({"content": content})
    assert (str(error.value), made.accepted) == (message, None)


def test_an_invalid_schema_is_a_mistake_in_the_agent_file() -> None:
    with pytest.raises(SettingsError, match=r"^output\.schema is not a JSON Schema: 'nothing' is not valid"):
        reports("json", {"type": "nothing"})


def test_definitions_of_a_schema_stay_at_its_root() -> None:
    schema = {"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}
    parameters = internal.final_report("json", schema)["parameters"]
    assert parameters["$defs"] == {"n": {"type": "integer"}}
    assert parameters["properties"]["content"] == {"$ref": "#/$defs/n", "description": "The whole report"}
    made = reports("json", schema)
    made.submit({"content": 3})
    assert made.accepted is not None


@pytest.mark.parametrize("reference", ["#/$defs/missing", "#nowhere", "https://example.com/other.json", "other.json#/a"])
def test_a_schema_with_outside_references_is_refused_immediately(reference: str) -> None:
    schema = {"$defs": {"known": {}}, "properties": {"a": {"prefixItems": [{"$ref": reference}]}, "b": {"$ref": reference}}}
    with pytest.raises(SettingsError) as caught:
        reports("json", schema)
    assert str(caught.value) == f"output.schema refers to {reference!r}, which is not in it."


def test_a_schema_can_refer_to_anything_inside_it() -> None:
    schema = {
        "$defs": {"day": {"$anchor": "day", "type": "string"}, "other": {"$id": "https://example.com/o", "type": "integer"}},
        "properties": {
            "tree": {"$ref": "#"},
            "a": {"$ref": "#/$defs/day"},
            "b": {"$ref": "#day"},
            "c": {"$ref": "https://example.com/o"},
            "d": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
            "e": {"const": {"$ref": "no reference"}},
        },
    }
    made = reports("json", schema)
    made.submit({"content": {"tree": {"a": "x"}, "b": "y", "c": 1, "d": {}}})
    assert made.accepted is not None
    with pytest.raises(BadRequest, match=r"does not match its JSON Schema: \$\.c: 'x' is not of type 'integer'\."):
        made.submit({"content": {"c": "x"}})


def test_a_report_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(BadRequest) as caught:
        reports("json").submit({"content": "[" * 100_000})
    assert str(caught.value) == "Your final report was not accepted: it is nested too deeply. Submit JSON with fewer levels."


@pytest.mark.parametrize("content", ['{"a": NaN}', {"a": float("nan")}, "[1e999]", "-Infinity"])
def test_numbers_that_json_does_not_have_are_refused(content: Any) -> None:
    with pytest.raises(
        BadRequest, match=r"^Your final report was not accepted: it is not JSON \(Out of range float values are not"
    ):
        reports("json").submit({"content": content})


def test_a_schema_that_cannot_be_checked_accepts_no_report() -> None:
    with pytest.raises(BadRequest) as caught:
        reports("json", {"allOf": [{"$ref": "#"}]}).submit({"content": {}})
    assert str(caught.value) == (
        "Your final report was not accepted: it does not match its JSON Schema: it cannot be checked, because "
        "it is nested too deeply, or refers to itself without end."
    )
