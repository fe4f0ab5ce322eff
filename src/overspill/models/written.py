"""Tool calls that a model wrote into its text instead of making them.

Reads `<tool_call>…</tool_call>` and similar tags, fenced blocks, and text that is or ends with the call itself, as JSON or
Python. Text that names no known tool is left unchanged.
"""

from __future__ import annotations

import ast
import json
import secrets
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias, cast
from warnings import catch_warnings

from msgspec.structs import replace

from overspill.models.protocol import Response
from overspill.text.lenient_json import loads
from overspill.text.regex import regex
from overspill.types import ToolCall

UNREADABLE = "INVALID_JSON"
"""The only argument of a call whose arguments could not be read; its value is their text."""

_Found: TypeAlias = tuple[str, dict[str, Any]]
"""A known tool's name and the arguments."""

_MARKED = (
    regex(r"(?is)<tool_?calls?>(?P<call>.*?)(?:</tool_?calls?>|\Z)"),
    regex(r"(?s)<function=(?P<name>[\w.-]+)>(?P<call>.*?)(?:</function>|\Z)"),
    regex(r"(?s)\[TOOL_CALLS\](?P<call>.*)\Z"),
    regex(r"(?s)<\|python_tag\|>(?P<call>.*?)(?:<\|eom_id\|>|\Z)"),
    regex(r"(?ms)^[ \t]*(?P<fence>`{3,16}|~{3,16})[ \t]*+[\w+-]*+[ \t]*+\n?(?P<call>.*?)(?:(?P=fence)|\Z)"),
)
_BARE = regex(r"(?m)^[ \t]*(?=[\[{]|[\w.]+\()")
_THOUGHT = regex(r"(?s)\A\s*+<think>.*?</think>")

_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "params", "input", "action_input", "tool_input", "kwargs")
_CONSTANTS = {"true": True, "false": False, "null": None}
_MAX_TEXT_CHARS = 100_000  # a call is short
_MAX_PYTHON_CHARS = 10_000  # the parser is slow
_MAX_BARE_TRIES = 10
_GAP = regex(r"[\s,;]+")


def find_written_calls(response: Response, known: Collection[str]) -> Response:
    """Move the calls in the response's text to its calls. Unchanged if the text holds no calls."""
    if response.calls or len(response.text) > _MAX_TEXT_CHARS:
        return response
    rest, found = _find_calls(_THOUGHT.sub("", response.text), known)
    if not found:
        return response
    calls = tuple(ToolCall(f"call_{secrets.token_hex(8)}", name, args) for name, args in found)
    return replace(response, text=rest.strip(), calls=calls)


def _find_calls(text: str, known: Collection[str]) -> tuple[str, list[_Found]]:
    if calls := _read_calls(text, "", known):  # try this first, because the arguments of a call may look like a mark
        return "", calls
    for pattern in _MARKED:
        found: list[_Found] = []
        rest: list[str] = []
        done = 0
        for match in pattern.finditer(text):
            if calls := _read_calls(match["call"], match.groupdict().get("name", ""), known):
                found += calls
                rest.append(text[done : match.start()])
                done = match.end()
        if found:
            return "".join((*rest, text[done:])), found
    for match in islice(_BARE.finditer(text), _MAX_BARE_TRIES):
        if calls := _read_calls(text[match.end() :], "", known):
            return text[: match.start()], calls
    return text, []


def _read_calls(written: str, name: str, known: Collection[str]) -> list[_Found]:
    """Every value in the text must be a call: a document that holds one among other things is not a call."""
    values = _parse_values(written.strip(), known)
    if name:
        values = [{"name": name, "arguments": value} for value in values]
    found = [_read_call(value, known) for value in _flatten(values)]
    return [call for call in found if call] if all(found) else []


def _parse_values(written: str, known: Collection[str]) -> list[Any]:
    """The JSON values in `written`, one after the other; if it is not JSON, the values of its Python expressions."""
    decoder = json.JSONDecoder(strict=False)
    values: list[Any] = []
    position = 0
    try:
        while position < len(written):
            value, end = decoder.raw_decode(written, position)
            values.append(value)
            gap = _GAP.match(written, end)
            position = gap.end() if gap else end
    except (ValueError, RecursionError):
        if len(written) > _MAX_PYTHON_CHARS:
            return []
    else:
        return values
    try:
        with catch_warnings(action="ignore"):  # Python warns of a string like "\\d", which does not matter here
            body = ast.parse(written).body
        return [_evaluate(statement.value, known) if isinstance(statement, ast.Expr) else None for statement in body]
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return []


def _evaluate(node: ast.expr, known: Collection[str]) -> Any:
    """Literals, with JSON's names for true, false and null; a call of a known tool becomes the object that describes it."""
    match node:
        case ast.Call(func=ast.Name("print"), args=[inner], keywords=[]):
            return _evaluate(inner, known)
        case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name), args=[], keywords=keywords) if _match_tool(name, known):
            return {"name": name, "arguments": {word.arg: _evaluate(word.value, known) for word in keywords if word.arg}}
        case ast.Dict(keys=keys, values=values):
            return {_evaluate_literal(key, str): _evaluate(value, known) for key, value in zip(keys, values, strict=True)}
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return [_evaluate(item, known) for item in items]
        case ast.Name(id=word) if word in _CONSTANTS:
            return _CONSTANTS[word]
        case _:
            return _evaluate_literal(node, str | int | float | None)


def _evaluate_literal(node: ast.expr | None, kinds: Any) -> Any:
    """The value of a literal that JSON also has."""
    value = ast.literal_eval(node) if node else ...
    if not isinstance(value, kinds):
        raise ValueError
    return value


def _flatten(values: list[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from cast(list[Any], value)
        elif isinstance(value, dict) and isinstance(listed := cast(dict[Any, Any], value).get("tool_calls"), list):
            yield from cast(list[Any], listed)
        else:
            yield value


def _read_call(value: Any, known: Collection[str]) -> _Found | None:
    if not isinstance(value, dict):
        return None
    fields = cast(dict[Any, Any], value)
    if isinstance(inner := fields.get("function"), dict):
        return _read_call(inner, known)
    if len(fields) == 1:
        (key, args), *_ = fields.items()
        if isinstance(args, dict) and (name := _match_tool(key, known)):
            return name, cast(dict[str, Any], args)
    name_key = next((key for key in _NAME_KEYS if _match_tool(fields.get(key), known)), None)
    if name_key is None:
        return None
    name = _match_tool(fields[name_key], known)
    args = _read_arguments(fields, name_key)
    return (name, args) if name and args is not None else None


def _read_arguments(fields: Mapping[Any, Any], name_key: str) -> dict[str, Any] | None:
    key = next((key for key in _ARGUMENT_KEYS if key in fields), None)
    if key is None:
        # {"tool": "Grep", "pattern": "x"} is a call; {"name": "Grep", "colour": "red"} may be anything.
        return {k: v for k, v in fields.items() if k != name_key} if name_key in ("tool", "tool_name") else None
    value = fields[key]
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            value = loads(value or "{}", allow_control_characters=True)
        except (ValueError, RecursionError):
            return {UNREADABLE: value}
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def _match_tool(name: Any, known: Collection[str]) -> str | None:
    """The tool's real name: small models change its case or add a namespace."""
    if not isinstance(name, str):
        return None
    bare = name.rpartition(".")[2]
    if name in known or bare in known:
        return name if name in known else bare
    alike = [spelling for spelling in known if spelling.lower() == bare.lower()]
    return alike[0] if len(alike) == 1 else None
