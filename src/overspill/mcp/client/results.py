"""Turn the result of a server's tool into an output that the gate takes."""

from __future__ import annotations

from typing import Any, cast

import anyio.to_thread
import msgspec
from mcp.shared.exceptions import MCPError

from overspill.errors import ServerError
from overspill.gate.collect import block_text, text_block
from overspill.gate.images import blob_data
from overspill.gate.serialise import to_json
from overspill.mcp.client.handshake import Raw, as_mapping
from overspill.text.lenient_json import dumps, loads
from overspill.types import Block, Output

_MAX_REST_BYTES = 2_000  # of links, annotations and similar fields, which are measured only if they are longer


def require_result(result: Raw, server: str) -> None:
    """Raise ServerError if a server of the older protocol answers with a task without being asked for one."""
    if "task" in result and "content" not in result:
        raise ServerError(
            f"The server {server} started a task instead of answering, although it was not asked for one. "
            "The result is lost, but the tool may have done its work."
        )


async def to_output(result: Raw) -> Output:
    """Combine all content blocks, and the structured content unless it only repeats their text. Other long fields become text."""
    content, structured = result.get("content"), result.get("structuredContent")
    if isinstance(content, list):
        content = list(cast("list[Any]", content))
    else:  # no client can read it; measured as text, so that nothing large passes
        content = [text_block(content if isinstance(content, str) else _to_json(content))] if content else []
    if structured is not None:
        shown = [text for text in find_texts(content) if text]
        large = sum(map(len, shown)) > 256 * 1024
        repeated = await anyio.to_thread.run_sync(_is_repeated, structured, shown) if large else _is_repeated(structured, shown)
        if not repeated:
            content.append(text_block(_to_json(structured)))
    return Output(_bound_rest(result, content), is_error=bool(result.get("isError")), original=result)


def keep_short_fields(result: Raw) -> Raw:
    """Return the fields of a result besides its content: `_meta`, which is for the client alone, and others if they are short."""
    unknown = _find_unknown(result)
    left_out = unknown if len(dumps(unknown)) > _MAX_REST_BYTES else {}
    return {key: value for key, value in result.items() if key not in ("content", "structuredContent") and key not in left_out}


def _find_unknown(result: Raw) -> Raw:
    return {key: value for key, value in result.items() if key not in ("content", "structuredContent", "isError", "_meta")}


def _bound_rest(result: Raw, content: list[Any]) -> list[Block]:
    """Return the content. If what is neither text nor data is long in total, one text block at the end replaces it."""
    unknown, parts = _find_unknown(result), [_split_block(block) for block in content]
    rest = [each for _, others in parts for each in others] + ([unknown] if unknown else [])
    if not rest or len(dumps(rest)) <= _MAX_REST_BYTES:
        return content
    return [*(block for blocks, _ in parts for block in blocks), text_block(_to_json(rest))]


def _split_block(block: Any) -> tuple[list[Block], list[object]]:
    """Return the block without its other fields, if it is text or data, and then those fields or the whole other block."""
    fields = as_mapping(block)
    resource = as_mapping(fields.get("resource"))
    others = {key: value for key, value in fields.items() if key not in ("type", "text", "data", "mimeType", "resource")}
    others |= {key: value for key, value in resource.items() if key not in ("text", "blob")}
    if text := block_text(fields):
        return [text_block(text)], [others] if others else []
    is_data = blob_data(fields) and len(dumps([others, fields.get("mimeType")])) <= _MAX_REST_BYTES
    return ([fields], []) if is_data else ([], [block])


def to_error_output(error: MCPError) -> Output:
    data = error.error.data
    text = error.message if data is None else f"{error.message}\n{_to_json(data)}"
    return Output([text_block(text)], is_error=True, original=error)


def find_texts(content: list[Any]) -> list[str]:
    return [text for block in content if isinstance(text := as_mapping(block).get("text"), str)]


def format_progress(progress: Raw) -> str:
    done, total = _format_number(progress.get("progress")), _format_number(progress.get("total"))
    figures, message = f"{done} of {total}" if done and total else done, progress.get("message")
    return ": ".join(part for part in (figures, message if isinstance(message, str) else "") if part)


def _format_number(value: object) -> str:
    """Write a number in a standard form; empty if it is not a number that fits a float."""
    try:
        return f"{float(value):g}" if isinstance(value, int | float) else ""
    except OverflowError:
        return ""


def _is_repeated(structured: Any, texts: list[str]) -> bool:
    """Whether the texts already hold the structured content.

    Servers repeat it as text for older clients, and put a single value under some key.
    """
    values: list[Any] = [structured]
    if len(as_mapping(structured)) == 1:
        values += as_mapping(structured).values()
    for value in values:
        each = cast("list[Any]", value) if isinstance(value, list) else []
        if each and len(each) == len(texts) and all(map(_is_same_value, texts, each)):
            return True
    return any(_is_same_value(text, value) for text in texts for value in values)


def _is_same_value(text: str, value: Any) -> bool:
    if text == value:
        return True
    try:
        return bool(loads(text) == value)
    except (ValueError, RecursionError):
        return False


def _to_json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return to_json(value)
