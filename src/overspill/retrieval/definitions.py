"""The four retrieval tools and `run_program`: their definitions for a model, and the arguments they take."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from functools import cache
from importlib.util import find_spec
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast, get_args

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from overspill.errors import BadRequest
from overspill.schema.arguments import describe_arguments
from overspill.settings import Settings
from overspill.sql.library import is_installed
from overspill.text import lenient_json
from overspill.text.humanize import quote_line
from overspill.text.lenient_json import ready
from overspill.wording import programs
from overspill.wording.names import tool_name
from overspill.wording.presets import OVERSPILL, Wording

Format: TypeAlias = Literal["jsonschema", "openai", "openai-responses", "anthropic", "gemini", "mcp"]
DocumentMode: TypeAlias = Literal["auto", "full-chunked", "read-grep", "truncate"]
"""The modes that the manual of a preset names."""
ExtractMode: TypeAlias = Literal["auto", "focused", "full-chunked", "read-grep", "truncate"]
OutputMode: TypeAlias = Literal["raw", "extract", "slice", "grep", "query", "sql", "ask", "wait"]
EXTRACT_MODES = get_args(ExtractMode)
MODES = frozenset((*EXTRACT_MODES, *get_args(OutputMode)))

MAX_RANGE_DIGITS = 18  # enough for any output, and few enough for `int` to accept


class _Args(Struct, frozen=True, forbid_unknown_fields=True):
    """Field names, types, defaults and descriptions are what a model sees: `describe_arguments` derives the schema from them."""


_HANDLE = (
    "Handle of the stored tool output (relative path under the tool_output root, "
    "e.g. session-<uuid>/<file-uuid>; provided in the tool-result message)"
)
_DOCUMENT_EXTRACT = (
    "Provide precise, detailed instructions about what you need from the tool output "
    "(be specific, include keys/fields/sections if known)."
)
_DOCUMENT_MODE = (
    "Optional override. auto=module decides; full-chunked=LLM chunk+reduce; "
    "read-grep=dynamic sub-agent with Read/Grep; truncate=keeps top and bottom, truncates in the middle."
)
_PLAIN_READ = (
    "raw=all, if small; extract=what `query` asks for; slice=a part; grep=lines matching `pattern`; "
    "query=JSON pointer or JMESPath"
)


class DocumentToolOutput(_Args, frozen=True):
    handle: Annotated[str, Meta(min_length=1, description=_HANDLE)]
    extract: Annotated[str, Meta(min_length=1, description=_DOCUMENT_EXTRACT)]
    mode: Annotated[DocumentMode, Meta(description=_DOCUMENT_MODE)] = "auto"


class ToolOutput(_Args, frozen=True):
    handle: Annotated[str, Meta(min_length=1)]
    extract: Annotated[str, Meta(min_length=1)]
    mode: ExtractMode = "auto"


class ShortToolOutput(Struct, frozen=True):
    """For the default preset, if `surface` names it. Part of every request, so it has only the arguments that models need."""

    handle: Annotated[str, Meta(description="name or handle from the tool result")]
    extract: Annotated[str, Meta(description="what you need, then in parentheses other words that the text may use for it")]


class Slice(_Args, frozen=True):
    start: Annotated[int | None, Meta(description="first character, from 0")] = None
    length: Annotated[int | None, Meta(description="how many characters")] = None
    anchor: Annotated[str | None, Meta(description="plain text to find")] = None
    window: Annotated[int, Meta(description="characters around it")] = 1000
    match_index: Annotated[int, Meta(description="which match, from 0")] = 0
    lines: Annotated[str | None, Meta(description='"a-b"')] = None


class GetToolOutput(_Args, frozen=True, rename={"from_": "from"}):
    id: Annotated[str, Meta(description="id or handle from the tool result")]
    mode: Annotated[OutputMode, Meta(description=_PLAIN_READ)]
    query: Annotated[str | None, Meta(description="what to extract, or the JSON expression")] = None
    slice: Annotated[Slice | None, Meta(description="start and length, or anchor, or lines")] = None
    pattern: Annotated[str | None, Meta(description="RE2 regular expression")] = None
    context: Annotated[int, Meta(description="lines around each match")] = 2
    ignore_case: Annotated[bool, Meta(description="match any case")] = False
    from_: Annotated[int, Meta(description="byte to continue from")] = 0


class PlainGetToolOutput(GetToolOutput, frozen=True, rename={"from_": "from"}):
    """For presets that follow a manual. The other modes still work, or say what is missing."""

    mode: Annotated[Literal["raw", "extract", "slice", "grep", "query"], Meta(description=_PLAIN_READ)]


class ShortGetToolOutput(Struct, frozen=True, rename={"from_": "from"}):
    """All that the default preset offers, in few words: the replies to stored outputs show its calls."""

    id: str
    mode: Literal["ask", "grep", "slice", "query", "sql", "raw", "wait"]
    query: Annotated[str | None, Meta(description="question, JSON expression or SELECT")] = None
    slice: Annotated[dict[str, Any] | None, Meta(description='{"lines": "a-b"}')] = None
    pattern: str | None = None
    from_: int = 0


class ShortGetToolOutputWithoutSql(ShortGetToolOutput, frozen=True, rename={"from_": "from"}):
    """For when DuckDB is not installed."""

    mode: Literal["ask", "grep", "slice", "query", "raw", "wait"]


class WaitForToolOutput(_Args, frozen=True):
    pass


class GetArtifact(_Args, frozen=True, rename={"from_": "from"}):
    artifact_id: Annotated[str | None, Meta(description="id of the artifact")] = None
    id: Annotated[str | None, Meta(description="same as artifact_id")] = None
    start_line: Annotated[int | None, Meta(description="first line, from 1")] = None
    end_line: Annotated[int | None, Meta(description="last line, included")] = None
    lines: Annotated[str | None, Meta(description='"a-b", instead of start_line and end_line')] = None
    bytes: Annotated[str | None, Meta(description='"a-b" from 0, both included')] = None
    query: Annotated[str | None, Meta(description="JSON pointer or JMESPath")] = None
    from_: Annotated[int, Meta(description="character to continue from")] = 0


class RunProgram(_Args, frozen=True):
    code: Annotated[str, Meta(min_length=1, description=programs.CODE)]


class Definition(Struct, frozen=True):
    name: str
    description: str
    arguments: type[Struct]

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments: a new object each time, so that a host may change it."""
        return deepcopy(describe_arguments(self.arguments))


TOOLS: dict[str, Definition] = {
    tool.name: tool
    for tool in (
        Definition("tool_output", "Extract information from a stored oversized tool output by handle", ToolOutput),
        Definition("get_tool_output", "Read a stored or background tool output", GetToolOutput),
        Definition("wait_for_tool_output", "Wait until a tool running in the background completes", WaitForToolOutput),
        Definition("get_artifact", "Retrieve a stored artifact", GetArtifact),
        Definition("run_program", programs.DESCRIPTION, RunProgram),
    )
}


def offered_tools(settings: Settings) -> list[str]:
    """The names of the tools to offer. They depend on nothing that happens, so a provider's prompt cache stays valid."""
    surface = {*settings.surface, *(settings.wording.job_tools if settings.may_use_background else ())}
    may_call_tools = settings.program_tools or settings.trust_read_only
    if may_call_tools and settings.surface and not settings.wording.has_closed_sets:
        surface.add("run_program")
    return [name for name in TOOLS if name in surface and (name != "run_program" or has_programs())]


@cache
def has_programs() -> bool:
    """Whether the interpreter that programs run in is installed."""
    return find_spec("pydantic_monty") is not None


def define_offered_tools(settings: Settings, format: Format, prefix: str = "") -> list[dict[str, Any]]:
    return [definition(name, format, settings.wording, prefix) for name in offered_tools(settings)]


def definition(name: str, format: Format, words: Wording = OVERSPILL, prefix: str = "") -> dict[str, Any]:
    """The definition of a tool as each provider expects it. The model knows it by its name with the prefix."""
    tool = TOOLS[name]
    if name == "tool_output":
        tool = replace(tool, arguments=DocumentToolOutput if words.has_closed_sets else ShortToolOutput)
    if name == "get_tool_output":
        short = ShortGetToolOutput if is_installed() else ShortGetToolOutputWithoutSql
        offered = Definition(name, "Read a stored or running tool output", short)
        tool = replace(tool, arguments=PlainGetToolOutput) if words.has_closed_sets else offered
    return render_definition(tool, format, prefix)


def render_definition(tool: Definition, format: Format, prefix: str = "") -> dict[str, Any]:
    named = {"name": prefix + tool.name, "description": tool.description}
    if format == "openai":
        return {"type": "function", "function": {**named, "parameters": tool.parameters}}
    if format == "openai-responses":
        return {"type": "function", **named, "parameters": tool.parameters, "strict": False}
    keys = {"anthropic": "input_schema", "gemini": "parametersJsonSchema", "mcp": "inputSchema", "jsonschema": "parameters"}
    return {**named, keys[format]: tool.parameters}


A = TypeVar("A", bound=_Args)


def parse_arguments(name: str, kind: type[A], args: Mapping[str, Any]) -> A:
    """The arguments as models write them: numbers as strings, a slice as JSON or without its object, empty for "not given"."""
    described = describe_arguments(kind)
    properties: dict[str, Any] = described["properties"]
    try:
        return msgspec.convert(_tidy_arguments(kind, args, described), ready(kind), strict=False)
    except msgspec.ValidationError as error:
        wrong = next((key for key in properties if f"`$.{key}`" in str(error) and "enum" in properties[key]), None)
        hint = f"Its arguments: {', '.join(properties) or 'none'}"
        if wrong:
            hint = f"{wrong} is one of {', '.join(properties[wrong]['enum'])}"
        raise BadRequest(f"Invalid arguments for {tool_name(name)}: {quote_line(str(error))}. {hint}.") from None
    except UnicodeEncodeError:  # a lone surrogate in place of a number or a name
        raise BadRequest(f"Invalid arguments for {tool_name(name)}: a string is not valid Unicode.") from None


def parse_extraction(args: Mapping[str, Any], settings: Settings) -> ToolOutput | DocumentToolOutput:
    return parse_arguments("tool_output", DocumentToolOutput if settings.wording.has_closed_sets else ToolOutput, args)


def _tidy_arguments(kind: type[_Args], args: Mapping[str, Any], described: Mapping[str, Any]) -> dict[str, Any]:
    required, properties = described["required"], described["properties"]
    given = {key: value for key, value in args.items() if value is not None and (key in required or not _is_empty(value))}
    if kind is not GetToolOutput:
        return given
    slice = given.get("slice", {})
    if isinstance(slice, str):
        with suppress(ValueError, RecursionError):  # anything but JSON is refused below
            slice = lenient_json.loads(slice)
    loose = {key: given.pop(key) for key in Slice.__struct_fields__ if key in given and key not in properties}
    if isinstance(slice, dict):
        slice = {key: value for key, value in cast("dict[str, Any]", slice).items() if value is not None and not _is_empty(value)}
        if twice := sorted(set(loose) & set(slice)):
            raise BadRequest(f"{twice[0]} is given twice, inside slice and beside it. Give it inside slice.")
        slice = slice | loose
    return given | ({"slice": slice} if slice else {})


def _is_empty(value: object) -> bool:
    return isinstance(value, str | list | dict) and not value


def parse_range(name: str, spelling: str) -> tuple[int, int]:
    """The first and last number of `a-b`, both included. A single number is a range of one."""
    first, dash, last = spelling.replace(" ", "").partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or len(spelling) > 2 * MAX_RANGE_DIGITS:
        raise BadRequest(f'{name} must look like "100-200", not {spelling[:50]!r}.')
    return int(first), int(last if dash else first)
