"""Stored outputs as MCP resources: `overspill://session-<uuid>/<uuid>`, read in bounded parts."""

from __future__ import annotations

import base64
from urllib.parse import parse_qs

import anyio.to_thread
import mcp_types
from mcp.shared.exceptions import MCPError

from overspill.errors import BadRequest, HandleError, OverspillError
from overspill.mcp.client.connection import Raw
from overspill.session.session import Session
from overspill.text import encoding
from overspill.types import Kept

SCHEME = "overspill"
_MAX_PART_BYTES = 65_536  # where the settings set no limit


def is_output_uri(uri: object) -> bool:
    return isinstance(uri, str) and uri.startswith(f"{SCHEME}://")


def uri_of(kept: Kept) -> str:
    return f"{SCHEME}://{kept.handle}"


def make_link(kept: Kept) -> Raw:
    return {"type": "resource_link", **describe(kept)}


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
