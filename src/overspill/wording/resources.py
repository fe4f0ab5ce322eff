"""What a reader sees instead of a large MCP resource, or of another server answer that was stored."""

from __future__ import annotations

from overspill.text.humanize import format_size, one_line
from overspill.types import Kept


def part(start: int, end: int, total: int, after: str, search: str) -> str:
    """The note below a part. `after` is the address of the next part. `search` is a call that searches all parts, or empty."""
    call = f" To search all of it, call {search}." if search else ""
    return f"Bytes {start:,} to {end:,} of {total:,}. Read {after} for the next part, or change the number to skip.{call}"


def more_contents(shown: int, total: int, after: str) -> str:
    return f"{shown:,} of {total:,} contents are above. All are stored as a list in JSON. Read {after} for the next ones."


def linked(what: str, kept: Kept, uri: str) -> str:
    """The text in place of a blob, or of what a prompt embeds."""
    return f"{one_line(what)} ({format_size(kept.size.bytes)}) is stored and not shown. Read {uri} for it, part by part."


def stored_answer(method: str, size: int, uri: str) -> str:
    return (
        f"{one_line(method)} of the server has {size:,} characters. That is over the limits, and Overspill cannot shorten it. "
        f"It is stored as {uri} and can be read there. To let it pass, set truncation.overrides.{one_line(method)}.off."
    )


def stored_error(error: str, size: int, uri: str) -> str:
    return f"{one_line(error, 1000)} [The error has {size:,} characters. Read {uri} for all of it.]"


def unsaved_answer(method: str, why: str) -> str:
    return f"{one_line(method)} of the server is over the limits and does not pass, because it could not be stored whole: {why}"


def hidden_answer(method: str) -> str:
    return f"{one_line(method)} of the server has secrets that cannot be replaced, so it does not pass. See redact.shown."
