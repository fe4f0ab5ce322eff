"""How a stored output shows in MCP: as a resource, read in bounded parts, and in the form of a tool's output schema.

Some clients show a model the structured content and nothing else, so all that a reply says is in it.
"""

from __future__ import annotations

import base64
from typing import Any, cast
from urllib.parse import parse_qs

import anyio.to_thread
import mcp_types
from mcp.shared.exceptions import MCPError

from overspill.errors import BadRequest, HandleError, OverspillError
from overspill.mcp.client.connection import Raw, as_mapping
from overspill.session.session import Session
from overspill.text import encoding
from overspill.types import Kept

SCHEME = "overspill"
_MAX_PART_BYTES = 65_536  # where the settings set no limit
KEPT_KEY = "overspill"
_ROOT_KEYS = ("$schema", "$id", "$defs", "definitions", "title", "description")
_UNMOVED_PREFIXES = ("#/$defs/", "#/definitions/")
_KEPT_SCHEMA: Raw = {"type": "object", "required": [KEPT_KEY], "properties": {KEPT_KEY: {"type": "object"}}}
_TEXT_KEY = "result"  # under which the SDKs put the text of a tool that returns one
_ANY_TEXT = frozenset(("type", "title", "description", "default"))  # keys of a schema that any text matches
_TEXT_SCHEMA_KEYS = _ANY_TEXT | {"$schema", "$id", "properties", "required", "additionalProperties"}


def is_output_uri(uri: object) -> bool:
    return isinstance(uri, str) and uri.startswith(f"{SCHEME}://")


def uri_of(kept: Kept) -> str:
    return f"{SCHEME}://{kept.handle}"


def describe(kept: Kept) -> Raw:
    facts = {"title": kept.source, "mimeType": _mime_type(kept), "size": kept.size.bytes}
    return {"uri": uri_of(kept), "name": kept.artifact_id, **facts}


def _mime_type(kept: Kept) -> str:
    return "text/plain" if kept.media == "text" else "application/octet-stream"


async def read(session: Session, uri: str) -> Raw:
    """One part, from `?from=BYTE` on, and the address of the next part if there is one.

    The worker thread opens its own reader and closes it, so that it shares nothing with other readers of the same output.
    """
    handle, _, query = uri.removeprefix(f"{SCHEME}://").partition("?")
    start = parse_qs(query).get("from", ["0"])[0]
    if not start.isdecimal():
        raise MCPError(mcp_types.INVALID_PARAMS, f"from={start} is not a byte offset.", {"uri": uri})
    try:
        return await anyio.to_thread.run_sync(_read_part, session, handle, int(start[:18]))
    except OverspillError as error:
        is_mistake = isinstance(error, HandleError | BadRequest)
        code = mcp_types.INVALID_PARAMS if is_mistake else mcp_types.INTERNAL_ERROR
        raise MCPError(code, str(error), {"uri": uri}) from None


def _read_part(session: Session, handle: str, start: int) -> Raw:
    bound = session.settings.answer_max_bytes or _MAX_PART_BYTES
    with session.open(handle) as stored:
        raw = stored.bytes(start, start + bound)
        total = stored.reader.size
        is_text = stored.kept.media == "text"
        if is_text and start + len(raw) < total:
            raw = raw[: encoding.complete_length(raw) or len(raw)]
        end = start + len(raw)
        uri = f"{uri_of(stored.kept)}?from={start}" if start else uri_of(stored.kept)
        shown = {"text": encoding.decode(raw)} if is_text else {"blob": base64.b64encode(raw).decode()}
        contents: list[Raw] = [{"uri": uri, "mimeType": _mime_type(stored.kept), **shown}]
        if end < total:
            after = f"{uri_of(stored.kept)}?from={end}"
            note = f"Bytes {start:,} to {end:,} of {total:,}. Read {after} for the next part."
            contents.append({"uri": after, "mimeType": "text/plain", "text": note})
        return {"contents": contents}


def widen_schema(tool: Raw) -> Raw:
    """Let a handle match `outputSchema`, because clients refuse a result that does not."""
    if not isinstance(tool.get("outputSchema"), dict):
        return tool
    schema = as_mapping(tool["outputSchema"])
    if _takes_text(schema):
        return tool
    if _refers_inside(schema):
        return {key: value for key, value in tool.items() if key != "outputSchema"}
    root = {key: schema[key] for key in _ROOT_KEYS if key in schema}
    rest = {key: value for key, value in schema.items() if key not in root}
    kind = {"type": "object"} if schema.get("type") == "object" else {}  # older clients require it at the root
    return {**tool, "outputSchema": {**root, **kind, "anyOf": [rest, _KEPT_SCHEMA]}}


def structure_reply(schema: object, text: str, handle: str | None) -> Raw | None:
    """What a reply says, as structured content of a tool with this output schema. None if it has no schema."""
    if not isinstance(schema, dict):
        return None
    if _takes_text(as_mapping(cast("object", schema))):
        return {_TEXT_KEY: text}
    return {KEPT_KEY: {"message": text, **({} if handle is None else {"handle": handle})}}


def _takes_text(schema: Raw) -> bool:
    """Whether it asks for an object with one text, any text, under `result`, and for nothing else."""
    properties = as_mapping(schema.get("properties"))
    value = as_mapping(properties.get(_TEXT_KEY))
    return (
        schema.get("type") == "object"
        and value.get("type") == "string"
        and len(properties) == 1
        and schema.get("required", []) in ([], [_TEXT_KEY])
        and all(key in _TEXT_SCHEMA_KEYS or key.startswith("x-") for key in schema)
        and _ANY_TEXT.issuperset(value)
    )


def _refers_inside(schema: Any) -> bool:
    """Whether it refers to a part of itself that would move. Not recursive, because it may be nested to any depth."""
    parts: list[Any] = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts += cast("list[Any]", part)
            continue
        members = as_mapping(part)
        for reference in map(members.get, ("$ref", "$dynamicRef", "$recursiveRef")):
            if isinstance(reference, str) and reference.startswith("#") and not reference.startswith(_UNMOVED_PREFIXES):
                return True
        parts += members.values()
    return False
