"""Bytes to text, one character for each undecodable byte, so that a slice of bytes always gives a slice of text."""

from __future__ import annotations

import re

_SURROGATE = re.compile("\udced([\udca0-\udcbf])([\udc80-\udcbf])")
_STRAY = re.compile("[\udc80-\udcff]")


def decode(data: bytes) -> str:
    """UTF-8; an encoded lone surrogate is one character, any other undecodable byte is one U+FFFD."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _lenient(data)


def _lenient(data: bytes) -> str:
    # "surrogateescape" turns a stray byte B into U+DC00+B; marks keep real encoded surrogates apart from them.
    text = data.decode("utf-8", "surrogateescape")
    kept: list[str] = []
    done = 0
    for found in _SURROGATE.finditer(text):
        kept.append(_STRAY.sub("\ufffd", text[done : found.start()]))
        kept.append(chr(0xD000 | (ord(found[1]) & 0x3F) << 6 | ord(found[2]) & 0x3F))
        done = found.end()
    kept.append(_STRAY.sub("\ufffd", text[done:]))
    return "".join(kept)
