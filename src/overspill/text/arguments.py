"""Reads and writes the arguments of calls, which models write as JSON."""

from __future__ import annotations

from typing import Any, cast

from msgspec import json

from overspill.text import lenient_json


def read_arguments(written: object) -> Any:
    """Parses a model's JSON arguments. An empty string means none. Anything else stays a string, and gets an error later."""
    if not isinstance(written, str):
        return written
    try:
        read: Any = lenient_json.loads(written) if written.strip() else {}
    except (ValueError, RecursionError):
        return written
    return cast("dict[str, Any]", read) if isinstance(read, dict) else written


def encode_arguments(args: object) -> bytes | None:
    """A call's arguments as JSON: empty without arguments, None if JSON cannot represent them."""
    try:
        return json.encode(args) if args else b""
    except (TypeError, ValueError, RecursionError):
        return None


def chars_in(args: object) -> int:
    """How many characters a call's arguments have as JSON."""
    return len((encode_arguments(args) or b"").decode())
