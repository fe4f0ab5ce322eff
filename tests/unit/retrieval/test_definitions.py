"""The definitions of the four retrieval tools, and the arguments they take."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, get_args

import pytest

from overspill.errors import BadRequest
from overspill.retrieval.definitions import (
    MODES,
    TOOLS,
    Format,
    GetArtifact,
    GetToolOutput,
    Slice,
    ToolOutput,
    define_offered_tools,
    definition,
    offered_tools,
    parse_arguments,
    parse_extraction,
    parse_range,
)
from overspill.schema.arguments import describe_arguments
from overspill.settings import Settings
from overspill.settings.keys import PresetName
from overspill.text import tokens
from overspill.wording.presets import DOCUMENT

PARAMETERS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["handle", "extract"],
    "properties": {
        "handle": {
            "type": "string",
            "minLength": 1,
            "description": "Handle of the stored tool output (relative path under the tool_output root, "
            "e.g. session-<uuid>/<file-uuid>; provided in the tool-result message)",
        },
        "extract": {
            "type": "string",
            "minLength": 1,
            "description": "Provide precise, detailed instructions about what you need from the tool output "
            "(be specific, include keys/fields/sections if known).",
        },
        "mode": {
            "type": "string",
            "enum": ["auto", "full-chunked", "read-grep", "truncate"],
            "description": "Optional override. auto=module decides; full-chunked=LLM chunk+reduce; read-grep=dynamic sub-agent "
            "with Read/Grep; truncate=keeps top and bottom, truncates in the middle.",
        },
    },
}
NAMED = {"name": "tool_output", "description": "Extract information from a stored oversized tool output by handle"}


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("jsonschema", {**NAMED, "parameters": PARAMETERS}),
        ("openai", {"type": "function", "function": {**NAMED, "parameters": PARAMETERS}}),
        ("anthropic", {**NAMED, "input_schema": PARAMETERS}),
        ("mcp", {**NAMED, "inputSchema": PARAMETERS}),
    ],
)
def test_the_documents_tool_output_in_every_format(format: Format, expected: dict[str, Any]):
    assert definition("tool_output", format, DOCUMENT) == expected


@pytest.mark.parametrize(("preset", "has_focused"), [("overspill", True), ("tool_output", False), ("slow", False)])
def test_only_the_default_preset_takes_focused(preset: PresetName, has_focused: bool):
    settings = Settings(preset, surface=["tool_output"], **{"async": False})
    args = {"handle": "h", "extract": "x", "mode": "focused"}
    if has_focused:
        assert parse_extraction(args, settings).mode == "focused"
    else:
        with pytest.raises(BadRequest, match=r"mode is one of auto, full-chunked, read-grep, truncate\."):
            parse_extraction(args, settings)


AS_SENT = {
    "tool_output": '{"name": "tool_output", "description": "Extract information from a stored oversized tool output by handle", '
    '"parameters": {"type": "object", "additionalProperties": false, "required": ["handle", "extract"], "properties": {'
    '"handle": {"type": "string", "minLength": 1, "description": "Handle of the stored tool output (relative path under the '
    'tool_output root, e.g. session-<uuid>/<file-uuid>; provided in the tool-result message)"}, '
    '"extract": {"type": "string", "minLength": 1, "description": "Provide precise, detailed instructions about what you need '
    'from the tool output (be specific, include keys/fields/sections if known)."}, '
    '"mode": {"type": "string", "enum": ["auto", "full-chunked", "read-grep", "truncate"], "description": "Optional override. '
    "auto=module decides; full-chunked=LLM chunk+reduce; read-grep=dynamic sub-agent with Read/Grep; truncate=keeps top and "
    'bottom, truncates in the middle."}}}}',
    "get_tool_output": '{"name": "get_tool_output", "description": "Read a stored or background tool output", '
    '"parameters": {"type": "object", "additionalProperties": false, "required": ["id", "mode"], "properties": {'
    '"id": {"type": "string", "description": "id or handle from the tool result"}, '
    '"mode": {"type": "string", "enum": ["raw", "extract", "slice", "grep", "query"], "description": "raw=all, if small; '
    'extract=what `query` asks for; slice=a part; grep=lines matching `pattern`; query=JSON pointer or JMESPath"}, '
    '"query": {"type": "string", "description": "what to extract, or the JSON expression"}, '
    '"slice": {"type": "object", "properties": {"start": {"type": "integer", "description": "first character, from 0"}, '
    '"length": {"type": "integer", "description": "how many characters"}, '
    '"anchor": {"type": "string", "description": "plain text to find"}, '
    '"window": {"type": "integer", "description": "characters around it"}, '
    '"match_index": {"type": "integer", "description": "which match, from 0"}, '
    '"lines": {"type": "string", "description": "\\"a-b\\""}}, "description": "start and length, or anchor, or lines"}, '
    '"pattern": {"type": "string", "description": "RE2 regular expression"}, '
    '"context": {"type": "integer", "description": "lines around each match"}, '
    '"ignore_case": {"type": "boolean", "description": "match any case"}, '
    '"from": {"type": "integer", "description": "byte to continue from"}}}}',
    "wait_for_tool_output": '{"name": "wait_for_tool_output", '
    '"description": "Wait until a tool running in the background completes", '
    '"parameters": {"type": "object", "additionalProperties": false, "required": [], "properties": {}}}',
    "get_artifact": '{"name": "get_artifact", "description": "Retrieve a stored artifact", '
    '"parameters": {"type": "object", "additionalProperties": false, "required": [], "properties": {'
    '"artifact_id": {"type": "string", "description": "id of the artifact"}, '
    '"id": {"type": "string", "description": "same as artifact_id"}, '
    '"start_line": {"type": "integer", "description": "first line, from 1"}, '
    '"end_line": {"type": "integer", "description": "last line, included"}, '
    '"lines": {"type": "string", "description": "\\"a-b\\", instead of start_line and end_line"}, '
    '"bytes": {"type": "string", "description": "\\"a-b\\" from 0, both included"}, '
    '"query": {"type": "string", "description": "JSON pointer or JMESPath"}, '
    '"from": {"type": "integer", "description": "character to continue from"}}}}',
    "run_program": '{"name": "run_program", "description": "Run a Python program over stored tool outputs: count, sum, f'
    "ilter, join, compare. Only what it prints, and the value of its last expression, comes back.\\nload(n"
    "ame): parsed JSON; rows of a table as dicts; lines of anything else\\nparts(name): names of parts to "
    'load one by one, if an output is too large\\ntext(name, start, end): characters\\nsql(\\"SELECT \\u2026 '
    'FROM out_3f7k9q\\"): rows as dicts\\nfind(question, name): passages with positions\\nsave(label, value)'
    ": stores an output, returns its name\\ntool_stubs(): signatures of the tools it may call, as in await"
    " server.tool(id=1)\\nNo files, network, yield, del or packages; it has json, re, csv, math, collectio"
    'ns, itertools, functools, datetime, decimal.", "parameters": {"type": "object", "additionalPropertie'
    's": false, "required": ["code"], "properties": {"code": {"type": "string", "minLength": 1, "descript'
    'ion": "Python; `name` is the name of a stored output, such as out_3f7k9q"}}}}',
}


@pytest.mark.parametrize("name", TOOLS)
def test_a_definition_is_the_same_to_the_byte_in_every_version(name: str):
    """Providers cache a request by its first bytes, and those are the tools."""
    assert json.dumps(definition(name, "jsonschema", DOCUMENT)) == AS_SENT[name]


@pytest.mark.promise("cache-safe")
def test_a_definition_is_the_same_to_the_byte_in_every_process():
    program = (
        "import json; from overspill.retrieval.definitions import *; print(json.dumps([definition(n, 'openai') for n in TOOLS]))"
    )
    made = {
        subprocess.run([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("0", "1")
    }
    assert made == {json.dumps([definition(name, "openai") for name in TOOLS]).encode() + b"\n"}


@pytest.mark.parametrize("format", ["openai", "mcp", "anthropic"])
def test_what_the_default_preset_offers_takes_few_tokens(format: Format):
    """Every request pays for it: at 150 tokens, small tasks are more than 1 % dearer."""
    offered = define_offered_tools(Settings(), format)
    assert [tool.get("name") or tool["function"]["name"] for tool in offered] == ["get_tool_output"]
    assert tokens.count(json.dumps(offered, separators=(",", ":"))).tokens <= 125


def test_a_setting_gives_the_longer_list_back():
    longer = ["tool_output", "get_tool_output", "wait_for_tool_output"]
    assert offered_tools(Settings(surface=longer)) == longer


@pytest.mark.parametrize("format", get_args(Format))
def test_run_program_takes_few_tokens_of_its_own(format: Format):
    assert tokens.count(json.dumps(definition("run_program", format))).tokens <= 350


@pytest.mark.parametrize("name", TOOLS)
def test_every_argument_has_a_description(name: str):
    def missing(properties: dict[str, Any]) -> list[str]:
        inner = [found for each in properties.values() for found in missing(each.get("properties", {}))]
        return [key for key, each in properties.items() if not each.get("description")] + inner

    assert missing(definition(name, "jsonschema", DOCUMENT)["parameters"]["properties"]) == []


def test_the_default_preset_offers_part_of_what_it_takes():
    """Every request carries the definitions, so they leave out what models hardly use."""
    for name, taken in (("tool_output", ToolOutput), ("get_tool_output", GetToolOutput)):
        offered = definition(name, "jsonschema")["parameters"]
        assert set(offered["properties"]) < set(describe_arguments(taken)["properties"])
        assert "additionalProperties" not in offered


def test_a_host_may_change_its_copy_of_a_definition():
    definition("tool_output", "mcp", DOCUMENT)["inputSchema"]["properties"].clear()
    assert definition("tool_output", "mcp", DOCUMENT)["inputSchema"] == PARAMETERS


def test_the_tools():
    assert list(TOOLS) == ["tool_output", "get_tool_output", "wait_for_tool_output", "get_artifact", "run_program"]


@pytest.mark.parametrize(
    ("given", "slice"),
    [
        ({"slice": '{"lines": "3-4"}'}, Slice(lines="3-4")),
        ({"lines": "3-4"}, Slice(lines="3-4")),
        ({"start": "10", "length": 5}, Slice(start=10, length=5)),
        ({"slice": {"start": 10, "anchor": ""}, "length": "5"}, Slice(start=10, length=5)),
        ({"slice": "", "anchor": "x"}, Slice(anchor="x")),
        ({"slice": {}, "path": "", "options": {}, "tags": [], "note": None}, None),
    ],
)
def test_a_slice_as_models_write_it(given: dict[str, Any], slice: Slice | None):
    assert parse_arguments("get_tool_output", GetToolOutput, {"id": "x", "mode": "slice", **given}).slice == slice


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"slice": {"start": 1}, "start": 2}, "start is given twice, inside slice and beside it. Give it inside slice."),
        ({"slice": "lines 3 to 4"}, "Expected `object | null`, got `str` - at `$.slice`"),
        ({"slice": "[" * 100_000}, "Expected `object | null`, got `str` - at `$.slice`"),
        ({"slice": {"of": 1}}, "Object contains unknown field `of` - at `$.slice`"),
        ({"part": 1}, "Object contains unknown field `part`"),
    ],
)
def test_a_slice_that_makes_no_sense_is_refused(given: dict[str, Any], said: str):
    with pytest.raises(BadRequest) as refused:
        parse_arguments("get_tool_output", GetToolOutput, {"id": "x", "mode": "slice", **given})
    assert said in str(refused.value)


def test_arguments_as_models_write_them():
    asked = parse_arguments(
        "get_tool_output",
        GetToolOutput,
        {"id": "x", "mode": "grep", "pattern": "a", "context": "3", "ignore_case": "true", "from": "10", "slice": None},
    )
    assert asked == GetToolOutput("x", "grep", pattern="a", context=3, ignore_case=True, from_=10)
    assert parse_arguments("get_artifact", GetArtifact, {"id": "x", "start_line": "5"}) == GetArtifact(id="x", start_line=5)
    assert parse_arguments(
        "get_tool_output", GetToolOutput, {"id": "x", "mode": "slice", "slice": {"start": 1}}
    ) == GetToolOutput("x", "slice", slice=Slice(start=1))
    assert parse_arguments("tool_output", ToolOutput, {"handle": "h", "extract": "e"}).mode == "auto"


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        (
            "tool_output",
            {"handle": "x"},
            "Invalid arguments for tool_output: Object missing required field `extract`. Its arguments: handle, extract, mode.",
        ),
        (
            "tool_output",
            {"handle": "", "extract": "y"},
            "Invalid arguments for tool_output: Expected `str` of length >= 1 - at `$.handle`. "
            "Its arguments: handle, extract, mode.",
        ),
        (
            "tool_output",
            {"handle": "x", "extract": "y", "mode": "magic"},
            "Invalid arguments for tool_output: Invalid enum value 'magic' - at `$.mode`. "
            "mode is one of auto, focused, full-chunked, read-grep, truncate.",
        ),
        (
            "get_artifact",
            {"id": "x", "line": 3},
            "Invalid arguments for get_artifact: Object contains unknown field `line`. "
            "Its arguments: artifact_id, id, start_line, end_line, lines, bytes, query, from.",
        ),
        (
            "get_artifact",
            {"id": "x", "start_line": "ten"},
            "Invalid arguments for get_artifact: Expected `int | null`, got `str` - at `$.start_line`. "
            "Its arguments: artifact_id, id, start_line, end_line, lines, bytes, query, from.",
        ),
        (
            "wait_for_tool_output",
            {"id": "x"},
            "Invalid arguments for wait_for_tool_output: Object contains unknown field `id`. Its arguments: none.",
        ),
    ],
)
def test_invalid_arguments_are_answered_with_the_valid_ones(name: str, args: dict[str, Any], message: str):
    with pytest.raises(BadRequest) as caught:
        parse_arguments(name, TOOLS[name].arguments, args)
    assert str(caught.value) == message


@pytest.mark.parametrize(("spelling", "range"), [("1-100", (1, 100)), ("7", (7, 7)), (" 2 - 3 ", (2, 3)), ("5-3", (5, 3))])
def test_a_range(spelling: str, range: tuple[int, int]):
    assert parse_range("lines", spelling) == range


@pytest.mark.parametrize("spelling", ["", "-", "a-b", "1-", "-5", "1-2-3", "1.5-2", "0x1-2", "9" * 5000, "²", "../1-2"])
def test_a_malformed_range_is_refused(spelling: str):
    with pytest.raises(BadRequest) as caught:
        parse_range("bytes", spelling)
    assert str(caught.value) == f'bytes must look like "100-200", not {spelling[:50]!r}.'


def test_the_known_modes():
    assert {
        "raw",
        "extract",
        "slice",
        "grep",
        "query",
        "sql",
        "ask",
        "wait",
        "auto",
        "focused",
        "full-chunked",
        "read-grep",
        "truncate",
    } == MODES


def test_a_schema_is_made_once_and_a_host_may_change_what_it_gets():
    first = definition("tool_output", "mcp")
    first["inputSchema"]["properties"].clear()
    assert "handle" in definition("tool_output", "mcp")["inputSchema"]["properties"]
    assert describe_arguments(ToolOutput) is describe_arguments(ToolOutput)
