"""How a stored output appears in MCP: as a resource, read in bounded parts, and in the form of a tool's output schema.

Some clients show a model the structured content and nothing else, so all that a reply says is in it.
"""

from __future__ import annotations

import base64
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import parse_qs

import anyio.to_thread
import mcp_types
from mcp.shared.exceptions import MCPError

from overspill.errors import BadRequest, HandleError, OverspillError
from overspill.gate.decide import Pass, decide
from overspill.mcp.client.connection import Raw, as_mapping
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.meter import size_of
from overspill.text import encoding
from overspill.types import Kept
from overspill.wording import resources as wording

SCHEME = "overspill"
LINKS_SINCE = "2025-06-18"
_MAX_PART_BYTES = 65_536  # used if the settings set no limit
_MIN_PART_BYTES = 4  # the size of the longest character
KEPT_KEY = "overspill"
_ROOT_KEYS = ("$schema", "$id", "$defs", "definitions", "title", "description")
_UNMOVED_PREFIXES = ("#/$defs/", "#/definitions/")
_KEPT_SCHEMA: Raw = {"type": "object", "required": [KEPT_KEY], "properties": {KEPT_KEY: {"type": "object"}}}
_TEXT_KEY = "result"  # the key under which the SDKs put the result of a tool that returns a string
_ANY_TEXT = frozenset(("type", "title", "description", "default"))  # keys of a schema that any text matches
_TEXT_SCHEMA_KEYS = _ANY_TEXT | {"$schema", "$id", "properties", "required", "additionalProperties"}


def is_output_uri(uri: object) -> bool:
    return isinstance(uri, str) and uri.startswith(f"{SCHEME}://")


def uri_of(kept: Kept, start: int = 0) -> str:
    return f"{SCHEME}://{kept.handle}" + (f"?from={start}" if start else "")


def describe(kept: Kept) -> Raw:
    facts = {"title": kept.source, "mimeType": _mime_type(kept), "size": kept.size.bytes}
    return {"uri": uri_of(kept), "name": kept.artifact_id, **facts}


def _mime_type(kept: Kept) -> str:
    return "text/plain" if kept.media == "text" else "application/octet-stream"


def is_within_limits(texts: Sequence[str], settings: Settings) -> bool:
    """Whether texts may pass together. Blocks."""
    is_longer = 0 < settings.size_cap < sum(map(len, texts))
    return not is_longer and isinstance(decide(size_of("".join(texts), settings.model), settings), Pass)


def max_part_bytes(settings: Settings) -> int:
    bound = settings.answer_max_bytes or _MAX_PART_BYTES
    return max(_MIN_PART_BYTES, min(bound, settings.size_cap or bound))


async def read(session: Session, uri: str) -> Raw:
    """Read one part, which begins at `?from=BYTE`, with the address of the next part if there is one."""
    handle, _, query = uri.removeprefix(f"{SCHEME}://").partition("?")
    start = parse_qs(query, keep_blank_values=True).get("from", ["0"])[0]
    if not start.isdecimal():
        raise MCPError(mcp_types.INVALID_PARAMS, f"from={start} is not a byte offset.", {"uri": uri})
    with refusing(data={"uri": uri}):
        return {"contents": await anyio.to_thread.run_sync(read_part, session, handle, int(start[:18]))}


@contextmanager
def refusing(what: str = "", data: Raw | None = None) -> Generator[None]:
    """Refuse a request in the protocol's way if it raises one of our errors."""
    try:
        yield
    except OverspillError as error:
        is_mistake = isinstance(error, HandleError | BadRequest)
        raise MCPError(mcp_types.INVALID_PARAMS if is_mistake else mcp_types.INTERNAL_ERROR, f"{what}{error}", data) from None


def read_part(session: Session, handle: str, start: int = 0) -> list[Raw]:
    """Contents of a resource: a part within the limits of the tool it came from, and a note. Opens a separate reader. Blocks."""
    with session.open(handle) as stored:
        kept, total = stored.kept, stored.reader.size
        settings = session.settings.for_tool(kept.tool, kept.server)
        raw = stored.bytes(start, start + max_part_bytes(settings))
        if kept.media == "text":
            if start + len(raw) < total:
                raw = raw[: encoding.complete_length(raw) or len(raw)]
            while len(raw) > _MIN_PART_BYTES and not is_within_limits([encoding.decode(raw)], settings):
                half = raw[: len(raw) // 2]
                raw = half[: encoding.complete_length(half)]
        end = start + len(raw)
        shown = {"text": encoding.decode(raw)} if kept.media == "text" else {"blob": base64.b64encode(raw).decode()}
        contents: list[Raw] = [{"uri": uri_of(kept, start), "mimeType": _mime_type(kept), **shown}]
        if end < total:
            search = "" if start else settings.wording.call_for_text(kept, settings.surface)
            note = wording.part(start, end, total, uri_of(kept, end), search)
            contents.append({"uri": uri_of(kept, end), "mimeType": "text/plain", "text": note})
        return contents


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
    """Return what a reply says as structured content of a tool with this output schema; None if the tool has no schema."""
    if not isinstance(schema, dict):
        return None
    if _takes_text(as_mapping(cast("object", schema))):
        return {_TEXT_KEY: text}
    return {KEPT_KEY: {"message": text, **({} if handle is None else {"handle": handle})}}


def _takes_text(schema: Raw) -> bool:
    """Whether the schema allows any object whose only key is `result`, with any string."""
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
    """Whether a schema refers to a part of itself that would move. Not recursive, because schemas may be nested to any depth."""
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
