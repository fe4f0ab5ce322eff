from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overspill.models.protocol import Response
from overspill.models.written import UNREADABLE, find_written_calls
from overspill.types import ToolCall

KNOWN = ("Grep", "Read")
GREP = [("Grep", {"pattern": "moon"})]
BOTH = [*GREP, ("Read", {"start": 1, "all": True, "end": None})]


def found(text: str) -> list[tuple[str, dict[str, object]]]:
    return [(call.name, dict(call.args)) for call in find_written_calls(Response(text), KNOWN).calls]


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "Grep", "arguments": {"pattern": "moon"}}\n```',
        '```\n{"name": "Grep", "arguments": {"pattern": "moon"}}\n```',
        '```json {"name": "Grep", "arguments": {"pattern": "moon"}} ```',
        '```json\n{"name": "Grep", "arguments": {"pattern": "moon"}}',
        '~~~tool_call\n{"name": "Grep", "arguments": {"pattern": "moon"}}\n~~~',
        '<tool_call>\n{"name": "Grep", "arguments": {"pattern": "moon"}}\n</tool_call>',
        '<tool_call>{"name": "Grep", "arguments": {"pattern": "moon"}}',
        '<tool_call>[{"name": "Grep", "arguments": {"pattern": "moon"}}]</tool_call>',
        '<function=Grep>{"pattern": "moon"}</function>',
        '[TOOL_CALLS] [{"name": "Grep", "arguments": {"pattern": "moon"}}]',
        '<|python_tag|>{"name": "Grep", "parameters": {"pattern": "moon"}}<|eom_id|>',
        '{"name": "Grep", "arguments": {"pattern": "moon"}}',
        '{"name": "Grep", "arguments": "{\\"pattern\\": \\"moon\\"}"}',
        '{"tool": "Grep", "parameters": {"pattern": "moon"}}',
        '{"tool": "Grep", "pattern": "moon"}',
        '{"action": "Grep", "action_input": {"pattern": "moon"}}',
        '{"function": {"name": "Grep", "arguments": {"pattern": "moon"}}}',
        '{"type": "function", "function": {"name": "Grep", "arguments": {"pattern": "moon"}}}',
        '{"type": "function", "name": "Grep", "parameters": {"pattern": "moon"}}',
        '{"tool_calls": [{"name": "Grep", "arguments": {"pattern": "moon"}}]}',
        '{"Grep": {"pattern": "moon"}}',
        '{"name": "grep", "arguments": {"pattern": "moon"}}',
        '{"name": "functions.Grep", "arguments": {"pattern": "moon"}}',
        "{'name': 'Grep', 'arguments': {'pattern': 'moon',},}",
        '{{"name": "Grep", "arguments": {"pattern": "moon"}}}',
        'Grep(pattern="moon")',
        '[Grep(pattern="moon")]',
        '```tool_code\nprint(default_api.Grep(pattern="moon"))\n```',
        '<think>I could call {"name": "Read"}…</think>{"name": "Grep", "arguments": {"pattern": "moon"}}',
        '[note] I will look for it.\n{"name": "Grep", "arguments": {"pattern": "moon"}}\n',
    ],
)
def test_a_written_call_is_a_call(text: str) -> None:
    assert found(text) == GREP


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "Grep", "arguments": {"pattern": "moon"}}\n```\nand\n'
        '```json\n{"name": "Read", "arguments": {"start": 1, "all": true, "end": null}}\n```',
        '<tool_call>{"name": "Grep", "arguments": {"pattern": "moon"}}</tool_call>'
        '<tool_call>{"name": "Read", "arguments": {"start": 1, "all": true, "end": null}}</tool_call>',
        '{"name": "Grep", "arguments": {"pattern": "moon"}}\n{"tool": "Read", "args": {"start": 1, "all": true, "end": null}}',
        '[Grep(pattern="moon"), Read(start=1, all=true, end=null)]',
        'Grep(pattern="moon")\nRead(start=1, all=True, end=None)',
    ],
)
def test_several_written_calls_are_several_calls(text: str) -> None:
    assert found(text) == BOTH


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[a](b)\n" * 30 + '{"name": "Grep", "arguments": {"pattern": "moon"}}',
        "The Grep tool found nothing; Read (start=1) might.",
        "You could call Grep(pattern='moon') next.",
        '{"name": "Delete", "arguments": {"path": "/"}}',
        '```json\n{"name": "Delete", "arguments": {"path": "/"}}\n```',
        '{"name": "Grep", "colour": "red"}',
        '{"name": "Grep"}',
        '{"name": "Grep", "arguments": 7}',
        '{"name": ["Grep"], "arguments": {}}',
        '{"results": [{"name": "Grep", "arguments": {"pattern": "moon"}}], "total": 1}',
        '[{"name": "Grep", "arguments": {"pattern": "moon"}}, {"name": "Delete", "arguments": {}}]',
        "[1, 2, 3]",
        "```python\nfor line in Read(start=1):\n    print(line)\n```",
        '```python\nimport os\nx = Grep(pattern="moon")\n```',
        'Grep("moon")',
        '```python\nimport os\nGrep(pattern="moon")\n```',
        "{[1]: 2}",
        "{{[1]}: 2}",
        "{'name': 'Grep', 'arguments': {1: 2}}",
        "{'name': 'Grep', 'arguments': {**more}}",
        'Grep(pattern=b"moon")',
        "Grep(pattern=1 + 2j)",
        'Grep(pattern="' + "x" * 10_000 + '")',
        "Grep(pattern=os.environ)",
        '{"name": "Grep", "arguments": {"pattern": "moon"}} is how one would call it.',
        '{"name": "Grep", "arguments": {"pattern": ',
        "{" * 5000,
        "Grep(pattern=" + "(" * 300 + ")" * 300 + ")",
        '{"name": "Grep", "arguments": {"pattern": "' + "x" * 100_000 + '"}}',
    ],
)
def test_other_text_is_left_unchanged(text: str) -> None:
    assert find_written_calls(Response(text), KNOWN) == Response(text)


def test_what_was_said_around_a_call_stays_the_text() -> None:
    understood = find_written_calls(
        Response('I look.\n```json\n{"tool": "Grep", "pattern": "a"}\n```\nThen I answer.', model="a/m"), KNOWN
    )
    assert (understood.text, understood.model) == ("I look.\n\nThen I answer.", "a/m")
    assert find_written_calls(Response('So:\n{"tool": "Grep", "pattern": "a"}'), KNOWN).text == "So:"


def test_each_written_call_has_its_own_id() -> None:
    calls = find_written_calls(Response('[{"tool": "Grep", "pattern": "a"}, {"tool": "Grep", "pattern": "a"}]'), KNOWN).calls
    assert len({call.id for call in calls}) == 2


def test_unreadable_arguments_are_passed_on_as_text() -> None:
    assert found('{"name": "Grep", "arguments": "pattern=moon"}') == [("Grep", {UNREADABLE: "pattern=moon"})]
    assert found('{"name": "Read", "arguments": null}') == [("Read", {})]
    assert found('{"name": "Read", "arguments": ""}') == [("Read", {})]


def test_arguments_nested_too_deeply_are_handed_on_as_such() -> None:
    deep = "[" * 40_000
    assert found(json.dumps({"name": "Grep", "arguments": deep})) == [("Grep", {UNREADABLE: deep})]


def test_marks_inside_the_arguments_are_part_of_them() -> None:
    args = {"pattern": "<think>no</think><tool_call>Read(start=1)</tool_call>"}
    assert found(json.dumps({"name": "Grep", "arguments": args})) == [("Grep", args)]


def test_a_pattern_written_as_python_keeps_its_backslashes_without_a_warning() -> None:
    assert found(r'Grep(pattern="\d+ \w")') == [("Grep", {"pattern": r"\d+ \w"})]


def test_a_name_that_could_be_two_tools_is_neither() -> None:
    text = Response('{"name": "GREP", "arguments": {}}')
    assert find_written_calls(text, ("Grep", "grep")) == text


def test_calls_that_were_made_and_models_without_tools_are_left_alone() -> None:
    made = Response('{"tool": "Read"}', (ToolCall("1", "Grep"),))
    assert find_written_calls(made, KNOWN) is made
    text = Response('{"tool": "Read"}')
    assert find_written_calls(text, ()) is text


@given(st.text(alphabet=st.sampled_from("{}[]()\"'`:,<>\\/ \nGrepReadtool_callnameargumentsfunction=")))
def test_any_text_is_understood_without_an_error(text: str) -> None:
    understood = find_written_calls(Response(text), KNOWN)
    assert all(call.name in KNOWN for call in understood.calls)


@given(st.dictionaries(st.text(min_size=1, max_size=9), st.none() | st.booleans() | st.text() | st.lists(st.integers())))
def test_whatever_the_arguments_they_arrive_as_written(args: dict[str, object]) -> None:
    assert found(json.dumps({"name": "Grep", "arguments": args})) == [("Grep", args)]
