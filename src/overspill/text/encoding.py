"""Bytes as text without moving anything: what is not UTF-8 still has its place, and lines end where people see them end.

A character is a code point of valid UTF-8; a lone surrogate as Python's `surrogatepass` writes it; or one invalid byte, shown
as U+FFFD. A line ends with LF, CRLF or CR.
"""

from __future__ import annotations

import re

_MAX_CONTINUATION_BYTES = 3  # bytes that may follow the first one of a character
_REPLACEMENT = "\ufffd"

# Invalid bytes come out of `surrogateescape` one by one as U+DC80…U+DCFF, an encoded lone surrogate as three of them.
_ESCAPED_SURROGATE = re.compile("(\udced[\udca0-\udcbf][\udc80-\udcbf])")
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def encode(text: str) -> bytes:
    """UTF-8; a lone surrogate is written as it is, so that nothing a tool returned gets lost."""
    return text.encode("utf-8", "surrogatepass")


def decode(data: bytes) -> str:
    """Text with exactly one character for each character of the view, so that positions hold."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        parts = _ESCAPED_SURROGATE.split(data.decode("utf-8", "surrogateescape"))
    parts[::2] = [_ESCAPED_BYTE.sub(_REPLACEMENT, part) for part in parts[::2]]
    parts[1::2] = [part.encode("utf-8", "surrogateescape").decode("utf-8", "surrogatepass") for part in parts[1::2]]
    return "".join(parts)


def clean(text: str) -> str:
    """On its way to a model: a lone surrogate becomes U+FFFD. Control characters stay, they are what the tool said."""
    return text if text.isascii() else _SURROGATE.sub(_REPLACEMENT, text)


def make_searchable(data: bytes) -> bytes:
    """Valid UTF-8 (lone surrogates allowed) of the same length: each invalid byte becomes the control character SUBSTITUTE."""
    parts = _ESCAPED_SURROGATE.split(data.decode("utf-8", "surrogateescape"))
    parts[::2] = [_ESCAPED_BYTE.sub("\x1a", part) for part in parts[::2]]
    return "".join(parts).encode("utf-8", "surrogateescape")


def character_start(data: bytes, at: int) -> int:
    """`at`, or the start of the character that it lies inside of; data has to go on for three bytes after it, or to its end."""
    for back in range(1, min(_MAX_CONTINUATION_BYTES, at) + 1):
        lead = data[at - back]
        if lead >= 0xC0:
            length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            character = data[at - back : at - back + length]
            return at - back if len(character) == length > back and count_characters(character) == 1 else at
        if lead < 0x80:
            break
    return at


def byte_offset(data: bytes, chars: int) -> int:
    """How many bytes the first `chars` characters of data take."""
    if data.isascii():
        return min(chars, len(data))
    escaped = data.decode("utf-8", "surrogateescape")
    for found in _ESCAPED_SURROGATE.finditer(escaped):
        if found.start() >= chars:
            break
        chars += 2
    return len(escaped[:chars].encode("utf-8", "surrogateescape"))


def is_text(data: bytes) -> bool:
    """Whether a model could read it: UTF-8 (lone surrogates included) without NUL."""
    if b"\0" in data:
        return False
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def complete_length(data: bytes) -> int:
    """How many leading bytes end with a whole character; an unfinished sequence, at most three bytes, comes after them."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2
            return len(data) - back if back < needed else len(data)
        if byte < 0x80:
            break
    return len(data)


def count_characters(data: bytes) -> int:
    """How many there are."""
    if data.isascii():
        return len(data)
    escaped = data.decode("utf-8", "surrogateescape")
    return len(escaped) - 2 * sum(1 for _ in _ESCAPED_SURROGATE.finditer(escaped))
