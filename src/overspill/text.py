"""Bytes as text without moving anything: what is not UTF-8 still has its place, and lines end where people see them end."""

from __future__ import annotations

import codecs
import re

REPLACEMENT = "\ufffd"
_SURROGATES = re.compile("[\ud800-\udfff]")
_HANDLER = "overspill.position"


def encode(text: str) -> bytes:
    """UTF-8; a lone surrogate is written as it is, so that nothing a tool returned gets lost."""
    return text.encode("utf-8", "surrogatepass")


def decode(data: bytes | memoryview) -> str:
    """One character for each valid sequence and each encoded lone surrogate, one U+FFFD for each other byte."""
    return str(data, "utf-8", _HANDLER)


def clean(text: str) -> str:
    """For a model's eyes: lone surrogates, which no provider accepts, become U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub(REPLACEMENT, text)


def is_text(data: bytes) -> bool:
    """Whether a model could read it: UTF-8 (lone surrogates included) without NUL."""
    if b"\0" in data:
        return False
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def whole(data: bytes) -> int:
    """How many leading bytes end with a whole character; an unfinished sequence, at most three bytes, comes after them."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2
            return len(data) - back if back < needed else len(data)
        if byte < 0x80:
            break
    return len(data)


def line_ends(data: bytes) -> int:
    """How many lines end in data: with LF, CRLF or CR."""
    ends = data.count(b"\n")
    if b"\r" in data:
        ends += data.count(b"\r") - data.count(b"\r\n")
    return ends


def _keep_position(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    unit = error.object[error.start : error.start + 3]
    try:
        return unit.decode("utf-8", "surrogatepass"), error.start + len(unit)
    except UnicodeDecodeError:
        return REPLACEMENT, error.start + 1


# An error handler can only be named once registered; registering one changes nothing for anybody else.
codecs.register_error(_HANDLER, _keep_position)
