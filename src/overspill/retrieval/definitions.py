"""The four retrieval tools: their definitions for a model, and the arguments they take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct

from overspill.errors import BadRequest
from overspill.retrieval.parameters import parameters_schema

Format: TypeAlias = Literal["jsonschema", "openai", "anthropic", "mcp"]
ExtractMode: TypeAlias = Literal["auto", "full-chunked", "read-grep", "truncate"]
OutputMode: TypeAlias = Literal["raw", "extract", "slice", "grep", "query"]
EXTRACT_MODES = get_args(ExtractMode)
MODES = frozenset((*EXTRACT_MODES, *get_args(OutputMode)))

MAX_RANGE_DIGITS = 18  # enough for any output, and few enough for `int` to accept


class _Args(Struct, frozen=True, forbid_unknown_fields=True):
    """Field names, types, defaults and descriptions are what a model sees: `parameters_schema` derives the schema from them."""


class ToolOutput(_Args, frozen=True):
    handle: Annotated[
        str,
        Meta(
            min_length=1,
            description="Handle of the stored tool output (relative path under the tool_output root, "
            "e.g. session-<uuid>/<file-uuid>; provided in the tool-result message)",
        ),
    ]
    extract: Annotated[
        str,
        Meta(
            min_length=1,
            description="Provide precise, detailed instructions about what you need from the tool output "
            "(be specific, include keys/fields/sections if known).",
        ),
    ]
    mode: Annotated[
        ExtractMode,
        Meta(
            description="Optional override. auto=module decides; full-chunked=LLM chunk+reduce; "
            "read-grep=dynamic sub-agent with Read/Grep; truncate=keeps top and bottom, truncates in the middle."
        ),
    ] = "auto"


class Slice(_Args, frozen=True):
    start: int | None = None
    length: int | None = None
    anchor: str | None = None
    window: int = 1000
    match_index: int = 0
    lines: str | None = None


class GetToolOutput(_Args, frozen=True, rename={"from_": "from"}):
    id: str
    mode: Annotated[
        OutputMode,
        Meta(
            description="raw=all, if small; extract=what `query` asks for; slice=a part; grep=lines matching `pattern`; "
            "query=JSON pointer or JMESPath"
        ),
    ]
    query: str | None = None
    slice: Annotated[
        Slice | None,
        Meta(description='start+length in characters, anchor (plain text) with window around it, or lines "a-b"'),
    ] = None
    pattern: Annotated[str | None, Meta(description="RE2 regex")] = None
    context: int = 2
    ignore_case: bool = False
    from_: Annotated[int, Meta(description="byte to go on from")] = 0


class WaitForToolOutput(_Args, frozen=True):
    pass


class GetArtifact(_Args, frozen=True, rename={"from_": "from"}):
    artifact_id: str | None = None
    id: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    lines: Annotated[str | None, Meta(description='"a-b"')] = None
    bytes: Annotated[str | None, Meta(description='"a-b" from 0, both included')] = None
    query: Annotated[str | None, Meta(description="JSON pointer or JMESPath")] = None
    from_: Annotated[int, Meta(description="character to go on from")] = 0


class Definition(Struct, frozen=True):
    name: str
    description: str
    arguments: type[_Args]

    @property
    def parameters(self) -> dict[str, Any]:
        """A new object each time, so that a host may change it."""
        return parameters_schema(self.arguments)


TOOLS: dict[str, Definition] = {
    tool.name: tool
    for tool in (
        Definition("tool_output", "Extract information from a stored oversized tool output by handle", ToolOutput),
        Definition("get_tool_output", "Read a stored or background tool output", GetToolOutput),
        Definition("wait_for_tool_output", "Wait until a tool running in the background completes", WaitForToolOutput),
        Definition("get_artifact", "Retrieve a stored artifact", GetArtifact),
    )
}


def definition(name: str, format: Format) -> dict[str, Any]:
    """The definition of a tool as each provider expects it."""
    tool = TOOLS[name]
    match format:
        case "openai":
            function = {"name": name, "description": tool.description, "parameters": tool.parameters}
            return {"type": "function", "function": function}
        case "anthropic":
            return {"name": name, "description": tool.description, "input_schema": tool.parameters}
        case "mcp":
            return {"name": name, "description": tool.description, "inputSchema": tool.parameters}
        case "jsonschema":
            return {"name": name, "description": tool.description, "parameters": tool.parameters}


A = TypeVar("A", bound=_Args)


def parse_arguments(name: str, kind: type[A], args: Mapping[str, Any]) -> A:
    """Accepts numbers written as strings, as models write them, and treats null as not given."""
    given = {key: value for key, value in args.items() if value is not None}
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        properties: dict[str, Any] = TOOLS[name].parameters["properties"]
        wrong = next((key for key in properties if f"`$.{key}`" in str(error) and "enum" in properties[key]), None)
        hint = f"Its arguments: {', '.join(properties) or 'none'}"
        if wrong:
            hint = f"{wrong} is one of {', '.join(properties[wrong]['enum'])}"
        raise BadRequest(f"Invalid arguments for {name}: {error}. {hint}.") from None
    except UnicodeEncodeError:  # half a character where a number or a name belongs
        raise BadRequest(f"Invalid arguments for {name}: a string is not valid Unicode.") from None


def parse_range(name: str, spelling: str) -> tuple[int, int]:
    """`a-b`, both included; a single number is a range of one."""
    first, dash, last = spelling.replace(" ", "").partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or len(spelling) > 2 * MAX_RANGE_DIGITS:
        raise BadRequest(f'{name} must look like "100-200", not {spelling[:50]!r}.')
    return int(first), int(last if dash else first)
