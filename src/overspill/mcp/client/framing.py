"""Read and write JSON-RPC messages as lines of bytes. A line may hold anything, at any length; only messages get through."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeAlias, cast

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from overspill.text.lenient_json import dumps, loads, loads_last
from overspill.text.regex import regex

MAX_MESSAGE_BYTES = 256 * 1024 * 1024
_MAX_EDGE_BYTES = 4096
_LARGE_BYTES = 32 * 1024 * 1024  # above this, saving memory is worth the time it takes
_TOKEN = regex(rb'(?s)"((?:[^"\\]++|\\.)*+)(?:"(\s*+:)?|(\\?\Z))|[{}\[\]]|-?\d[\d.eE+-]*+')
_FIELDS = ("id", "method", "params", "result", "error")
_LAST_ID = regex(rb',\s*"id"\s*:\s*(\d{1,15}|"[^"\\]{1,200}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')
_MAX_ID_BYTES = 202

Receive: TypeAlias = Callable[[], Awaitable[bytes]]
Raw: TypeAlias = "dict[str, Any]"


class BadLine(Exception):
    """A line that is not a message. A response names its request near one end, so `head` and `tail` are kept."""

    def __init__(self, problem: str, head: bytes = b"", tail: bytes = b"") -> None:
        super().__init__(problem)
        self.head = head
        self.tail = tail


async def read_batches(receive: Receive, limit: int = MAX_MESSAGE_BYTES) -> AsyncGenerator[list[bytes | BadLine]]:
    """Yield lines until `receive` ends: all that ended in one chunk together, last one first. The caller may empty the list.

    Only the two ends of a line over the limit stay in memory. A last line without a line feed counts if it is a whole message.
    """
    parts: list[bytes] = []
    size = 0
    while True:
        try:
            chunk = await receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            break
        if not chunk:
            break
        batch: list[bytes | BadLine] = []
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            parts.append(piece)
            size += len(piece)
            if size > limit:
                problem = f"a message of {size:,} bytes, more than the limit of {limit:,}"
                batch.append(BadLine(problem, *_cut_edges(parts)))
            else:
                batch.append(b"".join(parts))
            parts.clear()  # frees a line that may be large: the next one may arrive much later
            size = 0
        if rest:
            parts.append(rest)
            size += len(rest)
            if size > limit:
                parts = _cut_edges(parts)
        if batch:
            batch.reverse()
            yield batch
    if size <= limit and not isinstance(decode(last := b"".join(parts)), BadLine):
        yield [last]


def _cut_edges(parts: list[bytes]) -> list[bytes]:
    """Return the first and last bytes. Does not join the parts, which would double their memory."""
    head = tail = b""
    for part in parts:
        head += part[: _MAX_EDGE_BYTES - len(head)]
        if len(head) == _MAX_EDGE_BYTES:
            break
    for part in reversed(parts):
        tail = part[max(0, len(part) - _MAX_EDGE_BYTES + len(tail)) :] + tail
        if len(tail) == _MAX_EDGE_BYTES:
            break
    return [head, tail]


def decode(line: bytes) -> SessionMessage | BadLine:
    return take_last([line]) or BadLine("a line that is not JSON")


def take_last(lines: list[Any]) -> SessionMessage | BadLine | None:
    """Take the last line out of the list and decode it. Returns None for a blank line."""
    line = lines[-1]
    if isinstance(line, BadLine) or not line.strip():
        lines.pop()
        return line if isinstance(line, BadLine) else None
    head, tail, is_large = line[:_MAX_EDGE_BYTES], line[-_MAX_EDGE_BYTES:], len(line) >= _LARGE_BYTES
    del line  # frees the memory of a large one as soon as possible
    try:
        message = _build_message(loads_last(lines) if is_large else loads(lines.pop()))
    except (ValueError, RecursionError):
        return BadLine("a line that is not JSON", head, tail)
    return BadLine("JSON that is not a JSON-RPC message", head, tail) if message is None else SessionMessage(message)


def error_reply(line: BadLine) -> SessionMessage | None:
    """Turn an unreadable answer into an error, so that its request does not wait forever."""
    keys = _outermost_keys(line.head)
    if b"method" in keys or not keys.keys() & {b"jsonrpc", b"result", b"error"}:
        return None  # not an answer, but perhaps a log line with an id
    found = _LAST_ID.search(line.tail)
    if (id := _read_id(keys.get(b"id") or (found[1] if found else b""))) is None:
        return None
    error = mcp_types.ErrorData(code=mcp_types.INTERNAL_ERROR, message=f"The server answered with {line}. Ask it for less.")
    return SessionMessage(mcp_types.JSONRPCError(jsonrpc="2.0", id=id, error=error))


def refusal(line: BadLine) -> SessionMessage:
    """Answer an unreadable request under its id, if it has a readable one, so that the client does not wait forever."""
    keys = _outermost_keys(line.head)
    is_request = b"method" in keys and keys.get(b"jsonrpc", b'"2.0"') == b'"2.0"'
    id = _read_id(keys.get(b"id", b"")) if is_request else None
    code = mcp_types.PARSE_ERROR if id is None else mcp_types.INVALID_REQUEST
    return SessionMessage(
        mcp_types.JSONRPCError(jsonrpc="2.0", id=id, error=mcp_types.ErrorData(code=code, message=f"Received {line}."))
    )


def _read_id(token: bytes) -> int | str | None:
    try:
        id = loads(token) if len(token) <= _MAX_ID_BYTES else None
    except ValueError:
        return None
    return id if isinstance(id, int | str) else None


def _outermost_keys(head: bytes) -> dict[bytes, bytes]:
    """Find the keys of the outermost object whose values are strings or numbers, up to the end of `head`."""
    found: dict[bytes, bytes] = {}
    depth, key = 0, b""
    for token in _TOKEN.finditer(head):
        text = token[0]
        if token.lastindex == 3:
            break  # a string that continues beyond the head
        if text in b"{[":
            depth += 1
        elif text in b"}]":
            depth -= 1
        elif depth == 1 and token[2]:
            key = token[1]
            found[key] = b""
        elif depth == 1 and key:
            found[key] = text
    return found


def encode(message: mcp_types.JSONRPCMessage) -> bytes:
    given = message.model_fields_set  # a set, whose order differs from process to process
    raw = {name: getattr(message, name) for name in _FIELDS if name in given}
    if isinstance(message, mcp_types.JSONRPCError):
        raw["error"] = message.error.model_dump(by_alias=True, exclude_unset=True)
    return dumps({"jsonrpc": "2.0", **raw}) + b"\n"


def _build_message(raw: Any) -> mcp_types.JSONRPCMessage | None:
    """Check the fields of the message, but not the payload, which may be large and passes unchanged."""
    fields = cast("Raw", raw)
    if not isinstance(raw, dict) or fields.get("jsonrpc") != "2.0":
        return None
    id, method = fields.get("id"), fields.get("method")
    known_id = isinstance(id, str) or (isinstance(id, int) and not isinstance(id, bool))
    if isinstance(method, str):
        if "params" in fields and not isinstance(fields["params"], dict):
            return None
        given: dict[str, Any] = {"params": fields["params"]} if "params" in fields else {}
        if "id" not in fields:
            return mcp_types.JSONRPCNotification(jsonrpc="2.0", method=method, **given)  # faster than `model_construct`
        return mcp_types.JSONRPCRequest.model_construct(jsonrpc="2.0", id=id, method=method, **given) if known_id else None
    if known_id and isinstance(fields.get("result"), dict):
        return mcp_types.JSONRPCResponse.model_construct(jsonrpc="2.0", id=id, result=fields["result"])
    match fields.get("error"):
        case {"code": int(code), "message": str(words)} as error if known_id or id is None:
            extra: dict[str, Any] = {"data": error["data"]} if "data" in error else {}
            data = mcp_types.ErrorData.model_construct(code=code, message=words, **extra)
            return mcp_types.JSONRPCError.model_construct(jsonrpc="2.0", id=id, error=data)
        case _:
            return None
