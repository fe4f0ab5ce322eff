"""Select the entries of a server's lists that clients can read. A single unreadable one would cost them the whole list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import mcp_types
from pydantic import BaseModel, ValidationError

from overspill.mcp.client.handshake import Raw, as_mapping
from overspill.text.humanize import one_line
from overspill.text.lenient_json import clean_value, dumps
from overspill.text.regex import regex

MAX_ENTRY_LEVELS = 100  # some clients read at most 128 levels of JSON, and a message adds a few
MAX_ENTRY_BYTES = 1 << 20
MAX_NAME_CHARS = 256
_MAX_MESSAGE_LEVELS = 150  # the SDK reads at most 200 over HTTP
_MAX_NAMED = 10
_MODELS: dict[str, type[BaseModel]] = {
    "tools": mcp_types.Tool,
    "prompts": mcp_types.Prompt,
    "resources": mcp_types.Resource,
    "resourceTemplates": mcp_types.ResourceTemplate,
}
_NOUNS = {"resourceTemplates": "resource templates"}
_TOKEN = regex(rb'(?s)"(?:[^"\\\n]++|\\.)*+"?|[{\[]|[}\]]|\n')


def select_usable(pages: Iterable[object], key: str, taken: Iterable[str] = ()) -> tuple[list[Raw], list[str]]:
    """Return the entries that clients can read, and a phrase about each other entry. The last phrase may count many entries.

    `pages` are the values that the server sent as lists. Tool names must be unique and not in `taken`.
    """
    usable, flaws, more = list[Raw](), list[str](), 0
    names = set(taken)

    def leave_out(flaw: str) -> None:
        nonlocal more
        if len(flaws) < _MAX_NAMED:
            flaws.append(flaw)
        else:
            more += 1  # only counted: a server may send millions

    for page in pages:
        if not isinstance(page, list):
            leave_out(f"a page that is not a list of {_NOUNS.get(key, key)}")
            continue
        for number, value in enumerate(cast("list[object]", page), 1):
            entry = complete_tool(value) if key == "tools" else value
            name = _name(entry)
            if why := find_flaw(entry, key) or ("another one has this name" if name in names else ""):
                leave_out(f"'{one_line(name)}' ({why})" if name else f"number {number} ({why})")
                continue
            usable.append(as_mapping(entry))
            if key == "tools":
                names.add(name)
    return usable, [*flaws, *([f"{more:,} more"] if more else [])]


def complete_tool(entry: object) -> object:
    """Add the type `object` to a schema of arguments that has no type, because some clients insist on it."""
    tool = as_mapping(entry)
    schema = tool.get("inputSchema", {})
    if not tool or not isinstance(schema, dict) or "type" in schema:
        return entry
    return {**tool, "inputSchema": {"type": "object", **cast("Raw", schema)}}


def find_flaw(entry: object, key: str) -> str:
    """Return why clients cannot read an entry; empty if they can. Quotes nothing that the server sent."""
    if not isinstance(entry, dict):
        return "not an object"
    fields = as_mapping(entry)
    if _is_deep(fields):
        return f"nested more than {MAX_ENTRY_LEVELS} levels deep"
    if len(dumps(fields)) > MAX_ENTRY_BYTES:
        return f"more than {MAX_ENTRY_BYTES:,} bytes"
    if clean_value(fields) is not fields:
        return "not valid Unicode"
    if not _name(fields):
        return "no name"
    if len(_name(fields)) > MAX_NAME_CHARS:
        return f"a name of more than {MAX_NAME_CHARS} characters"
    try:
        _MODELS[key].model_validate(fields, by_name=False)
    except ValidationError as error:
        place = error.errors(include_input=False, include_url=False)[0]["loc"]
        return f"bad {place[0]}" if place else "bad fields"
    return "bad inputSchema" if key == "tools" and not _is_argument_schema(fields["inputSchema"]) else ""


def clip_levels(data: bytes) -> bytes:
    """Replace by null, in lines of JSON, what is nested so deeply that the SDK would refuse the message.

    What remains of such an entry is still nested too deeply to be usable, so `find_flaw` drops that entry and no other.
    """
    if data.count(b"{") + data.count(b"[") <= _MAX_MESSAGE_LEVELS:
        return data
    kept: list[bytes] = []
    level = end = 0
    for token in _TOKEN.finditer(data):
        text = token[0]
        if text == b"\n":
            level = 0
        elif text in (b"{", b"["):
            level += 1
            if level == _MAX_MESSAGE_LEVELS + 1:
                kept += [data[end : token.start()], b"null"]
        elif text in (b"}", b"]"):
            if level == _MAX_MESSAGE_LEVELS + 1:
                end = token.end()
            level -= 1
    return b"".join((*kept, data[end:])) if kept else data


def _is_deep(entry: object) -> bool:
    level: list[Any] = [entry]
    for _ in range(MAX_ENTRY_LEVELS):
        inner: list[Iterable[Any]] = [as_mapping(each).values() if isinstance(each, dict) else each for each in level]
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
    return bool(level)


def _is_argument_schema(schema: Raw) -> bool:
    """Whether every client would accept it as the schema of an object."""
    required: object = schema.get("required", [])
    return (
        schema.get("type") == "object"
        and isinstance(schema.get("properties", {}), dict)
        and isinstance(required, list)
        and all(isinstance(name, str) for name in cast("list[object]", required))
    )


def _name(entry: object) -> str:
    name = as_mapping(entry).get("name")
    return name if isinstance(name, str) else ""
