"""A text as a reader would see it, byte for byte where it stood.

Colours, tags, entities and escapes are overwritten with what they stand for and filled up with a byte that cannot occur in UTF-8,
so every position in the reading is a position in the stored bytes and nothing has to be mapped back.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable

NEVER_IN_UTF8 = (0xFF, 0xFE, 0xC0, 0xC1, *range(0xF5, 0xFE))

_ANSI = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78cDEHMNOZ])")
_RED = re.compile(rb"\x1b\[(?:[0-9;]*;)?(?:31|91)(?:;[0-9;]*)?m")

_MARKUP = re.compile(
    rb"<!--.*?-->|<(?P<hidden>script|style|svg)\b[^>]*>.*?</(?P=hidden)\s*>|<(?P<tag>/?[a-zA-Z][a-zA-Z0-9:-]*)(?:\"[^\"]*\"|'[^']*'|[^'\"<>])*>"
    rb"|&(?P<entity>\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});|(?P<space>[\r\n\t])",
    re.DOTALL | re.IGNORECASE,
)
_NEW_LINE = frozenset(
    b"tr /tr p /p br br/ li /li /ul /ol div /div /h1 /h2 /h3 /h4 /h5 /h6 /section /article /dt dd /dd pre /pre /title "
    b"/caption caption blockquote hr".split()
)
_TABLE = frozenset((b"table", b"/table"))
TABLE_EDGE = b"\f"
_CELL_END = frozenset((b"/td", b"/th"))
_HEADING = {b"h1": 1, b"h2": 2, b"h3": 3, b"h4": 4, b"h5": 5, b"h6": 6}

_ESCAPE = re.compile(rb"\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4})")
_PLAIN = {b'"': b'"', b"\\": b"\\", b"/": b"/", b"n": b"\n", b"r": b" ", b"t": b"\t", b"b": b" ", b"f": b" "}


def filler(data: bytes) -> bytes:
    """A byte the text does not have; empty when it has them all, which only arbitrary bytes do."""
    return next((bytes((value,)) for value in NEVER_IN_UTF8 if data.find(bytes((value,))) < 0), b"")


def without_colours(data: bytes, fill: bytes) -> bytes:
    return _ANSI.sub(lambda found: fill * len(found[0]), data)


def red_spans(data: bytes, start: int, end: int) -> list[int]:
    """Where a terminal would begin to write in red."""
    return [found.start() for found in _RED.finditer(data, start, end)]


def has_colours(data: bytes) -> bool:
    return data.find(b"\x1b[") >= 0


def without_tags(data: bytes, fill: bytes) -> bytes:
    """HTML as lines: one for each paragraph, list item and table row, cells parted by `|`, headings marked with `#`."""
    return _MARKUP.sub(_replace_markup(fill), data)


def _replace_markup(fill: bytes) -> Callable[[re.Match[bytes]], bytes]:
    def replace(found: re.Match[bytes]) -> bytes:
        size = len(found[0])
        if tag := found["tag"]:
            return _standing_for(tag.lower(), size).ljust(size, fill)
        if entity := found["entity"]:
            plain = html.unescape(f"&{entity.decode('ascii')};").encode("utf-8", "surrogatepass")
            return plain.ljust(size, fill) if len(plain) <= size else found[0]
        return b" " if found["space"] else fill * size

    return replace


def _standing_for(tag: bytes, size: int) -> bytes:
    if tag in _TABLE:
        return b"\n" + TABLE_EDGE + b"\n"
    if tag in _NEW_LINE:
        return b"\n"
    if tag in _CELL_END:
        return b" | "
    if depth := _HEADING.get(tag):
        return b"\n" + b"#" * min(depth, size - 2) + b" "
    return b""


def unescaped(data: bytes, fill: bytes) -> bytes:
    """The inside of a JSON string, one level of escapes undone."""

    def replace(found: re.Match[bytes]) -> bytes:
        code = found[0][1:]
        if code[:1] != b"u":
            return fill + _PLAIN[code]
        value = int(code[1:], 16)
        return found[0] if 0xD800 <= value < 0xE000 else chr(value).encode().rjust(6, fill)

    return _ESCAPE.sub(replace, data)
