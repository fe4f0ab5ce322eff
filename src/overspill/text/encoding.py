"""Decodes bytes without moving anything: bytes that are not UTF-8 keep their position.

A character is a code point of valid UTF-8; a lone surrogate as Python's `surrogatepass` writes it; or one invalid byte, shown
as U+FFFD.
"""

from __future__ import annotations

from overspill.text.regex import regex

_MAX_CONTINUATION_BYTES = 3  # bytes after the first byte of a character
_REPLACEMENT = "\ufffd"

# `surrogateescape` decodes each invalid byte as U+DC80…U+DCFF, and an encoded lone surrogate as three of them.
_ESCAPED_SURROGATE = regex("(\udced[\udca0-\udcbf][\udc80-\udcbf])")
_ESCAPED_BYTE = regex("[\udc80-\udcff]")
_SURROGATE = regex("[\ud800-\udfff]")


def encode(text: str) -> bytes:
    """The text as UTF-8, including lone surrogates, to preserve everything a tool returned."""
    return text.encode("utf-8", "surrogatepass")


def decode(data: bytes) -> str:
    """The text of bytes, with exactly one character for each character as defined above, which keeps positions valid."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        parts = _ESCAPED_SURROGATE.split(data.decode("utf-8", "surrogateescape"))
    parts[::2] = [_ESCAPED_BYTE.sub(_REPLACEMENT, part) for part in parts[::2]]
    parts[1::2] = [part.encode("utf-8", "surrogateescape").decode("utf-8", "surrogatepass") for part in parts[1::2]]
    return "".join(parts)


def clean(text: str) -> str:
    """Replaces lone surrogates with U+FFFD for a model. Control characters stay: the tool sent them."""
    return text if text.isascii() else _SURROGATE.sub(_REPLACEMENT, text)


def make_searchable(data: bytes) -> bytes:
    """Valid UTF-8 (lone surrogates allowed) of the same length: the control character SUBSTITUTE replaces each invalid byte."""
    parts = _ESCAPED_SURROGATE.split(data.decode("utf-8", "surrogateescape"))
    parts[::2] = [_ESCAPED_BYTE.sub("\x1a", part) for part in parts[::2]]
    return "".join(parts).encode("utf-8", "surrogateescape")


def character_start(data: bytes, at: int) -> int:
    """`at`, or the start of the character that contains it.

    `data` must extend three bytes past `at`, or to the end of the output.
    """
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
    """The size in bytes of the first `chars` characters."""
    if data.isascii():
        return min(chars, len(data))
    escaped = data.decode("utf-8", "surrogateescape")
    for found in _ESCAPED_SURROGATE.finditer(escaped):
        if found.start() >= chars:
            break
        chars += 2
    return len(escaped[:chars].encode("utf-8", "surrogateescape"))


def is_text(data: bytes) -> bool:
    """Whether a model can read it: UTF-8, lone surrogates included, without NUL."""
    return b"\0" not in data and is_utf8(data)


def is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def complete_length(data: bytes) -> int:
    """The number of leading bytes that end with a complete character. At most three bytes of an unfinished one follow."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2
            return len(data) - back if back < needed else len(data)
        if byte < 0x80:
            break
    return len(data)


def count_characters(data: bytes) -> int:
    if data.isascii():
        return len(data)
    escaped = data.decode("utf-8", "surrogateescape")
    return len(escaped) - 2 * sum(1 for _ in _ESCAPED_SURROGATE.finditer(escaped))
