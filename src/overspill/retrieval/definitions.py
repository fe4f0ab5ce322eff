"""The four retrieval tools: what a model is told of them, and the arguments it may send."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct

from overspill.errors import BadRequest

Format: TypeAlias = Literal["jsonschema", "openai", "anthropic", "mcp"]
ExtractMode: TypeAlias = Literal["auto", "full-chunked", "read-grep", "truncate"]
OutputMode: TypeAlias = Literal["raw", "extract", "slice", "grep", "query"]
MODES = frozenset((*get_args(ExtractMode), *get_args(OutputMode)))
Text: TypeAlias = Annotated[str, Meta(min_length=1)]


class _Args(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class ToolOutput(_Args, frozen=True):
    handle: Text
    extract: Text
    mode: ExtractMode = "auto"


class Slice(_Args, frozen=True):
    start: int | None = None
    length: int | None = None
    anchor: str | None = None
    window: int = 1000
    match_index: int = 0
    lines: str | None = None


class GetToolOutput(_Args, frozen=True, rename={"from_": "from"}):
    id: Text
    mode: OutputMode
    query: str | None = None
    slice: Slice | None = None
    pattern: str | None = None
    context: int = 2
    ignore_case: bool = False
    from_: int = 0


class WaitForToolOutput(_Args, frozen=True):
    pass


class GetArtifact(_Args, frozen=True, rename={"from_": "from"}):
    artifact_id: str | None = None
    id: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    lines: str | None = None
    bytes: str | None = None
    query: str | None = None
    from_: int = 0


class Definition(Struct, frozen=True):
    name: str
    description: str
    parameters: dict[str, Any]
    arguments: type[_Args]


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def _property(kind: str, description: str = "", **more: Any) -> dict[str, Any]:
    return {"type": kind, **more, **({"description": description} if description else {})}


_LONGEST = 18  # digits: more bytes or lines than any output has, and no more than the interpreter takes for a number

_TOOL_OUTPUT = Definition(
    "tool_output",
    "Extract information from a stored oversized tool output by handle",
    _object(
        ["handle", "extract"],
        handle=_property(
            "string",
            "Handle of the stored tool output (relative path under the tool_output root, e.g. session-<uuid>/<file-uuid>; "
            "provided in the tool-result message)",
            minLength=1,
        ),
        extract=_property(
            "string",
            "Provide precise, detailed instructions about what you need from the tool output "
            "(be specific, include keys/fields/sections if known).",
            minLength=1,
        ),
        mode=_property(
            "string",
            "Optional override. auto=module decides; full-chunked=LLM chunk+reduce; read-grep=dynamic sub-agent with Read/Grep; "
            "truncate=keeps top and bottom, truncates in the middle.",
            enum=["auto", "full-chunked", "read-grep", "truncate"],
        ),
    ),
    ToolOutput,
)

_GET_TOOL_OUTPUT = Definition(
    "get_tool_output",
    "Read a stored or background tool output",
    _object(
        ["id", "mode"],
        id=_property("string"),
        mode=_property(
            "string",
            "raw=all, if small; extract=what `query` asks for; slice=a part; grep=lines matching `pattern`; "
            "query=JSON pointer or JMESPath",
            enum=["raw", "extract", "slice", "grep", "query"],
        ),
        query=_property("string"),
        slice=_property(
            "object",
            'start+length in characters, anchor (plain text) with window around it, or lines "a-b"',
            properties={
                "start": _property("integer"),
                "length": _property("integer"),
                "anchor": _property("string"),
                "window": _property("integer"),
                "match_index": _property("integer"),
                "lines": _property("string"),
            },
        ),
        pattern=_property("string", "RE2 regex"),
        context=_property("integer"),
        ignore_case=_property("boolean"),
        **{"from": _property("integer", "byte to go on from")},
    ),
    GetToolOutput,
)

_WAIT_FOR_TOOL_OUTPUT = Definition(
    "wait_for_tool_output", "Wait until a tool running in the background completes", _object([]), WaitForToolOutput
)

_GET_ARTIFACT = Definition(
    "get_artifact",
    "Retrieve a stored artifact",
    _object(
        [],
        artifact_id=_property("string"),
        id=_property("string"),
        start_line=_property("integer"),
        end_line=_property("integer"),
        lines=_property("string", '"a-b"'),
        bytes=_property("string", '"a-b" from 0, both included'),
        query=_property("string", "JSON pointer or JMESPath"),
        **{"from": _property("integer", "character to go on from")},
    ),
    GetArtifact,
)

TOOLS: dict[str, Definition] = {
    tool.name: tool for tool in (_TOOL_OUTPUT, _GET_TOOL_OUTPUT, _WAIT_FOR_TOOL_OUTPUT, _GET_ARTIFACT)
}


def definition(name: str, format: Format) -> dict[str, Any]:
    """As the providers want it. A copy: what a host does to it stays with the host."""
    tool = TOOLS[name]
    parameters = json.loads(json.dumps(tool.parameters))
    match format:
        case "openai":
            function = {"name": name, "description": tool.description, "parameters": parameters}
            return {"type": "function", "function": function}
        case "anthropic":
            return {"name": name, "description": tool.description, "input_schema": parameters}
        case "mcp":
            return {"name": name, "description": tool.description, "inputSchema": parameters}
        case "jsonschema":
            return {"name": name, "description": tool.description, "parameters": parameters}


A = TypeVar("A", bound=_Args)


def arguments(name: str, kind: type[A], args: Mapping[str, Any]) -> A:
    """Checked. Numbers written as text, as models do, are taken as numbers; null is taken as not given."""
    given = {key: value for key, value in args.items() if value is not None}
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        properties: dict[str, Any] = TOOLS[name].parameters["properties"]
        named = next((key for key in properties if f"`$.{key}`" in str(error) and "enum" in properties[key]), None)
        known = f"Its arguments: {', '.join(properties) or 'none'}"
        if named:
            known = f"{named} is one of {', '.join(properties[named]['enum'])}"
        raise BadRequest(f"Invalid arguments for {name}: {error}. {known}.") from None


def parse_range(name: str, spelling: str) -> tuple[int, int]:
    """`a-b`, both included; a single number means just that one."""
    first, dash, last = spelling.replace(" ", "").partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or len(spelling) > 2 * _LONGEST:
        raise BadRequest(f'{name} has to look like "100-200", not {spelling[:50]!r}.')
    return int(first), int(last if dash else first)
