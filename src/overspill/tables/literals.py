"""Values as Python prints them, `[{'id': 1, 'of': None}]`, made into JSON. Nothing is evaluated."""

from __future__ import annotations

import json
import re

_LITERAL = re.compile(
    rb"\s*+(?:\[\s*+\(|(?:[\[({]\s*+)++(?:'[^'\n]{0,999}+'\s*+[:,]|[\w.+-]++\s*+[:,]\s*+(?:'|None\b|True\b|False\b)))"
)
_TOKEN = re.compile(
    rb"(?<![\w.])[bru]{0,2}'(?P<single>[^'\\]*+(?:\\.[^'\\]*+)*+)(?:'|\\?\Z)"
    rb"|(?<![\w.])[bru]{0,2}\"(?P<double>[^\"\\]*+(?:\\.[^\"\\]*+)*+)(?:\"|\\?\Z)"
    rb"|(?P<bracket>[()])|(?P<comma>,)(?=\s*+[)\]}])"
    rb"|(?<![\w.+-])(?:(?P<word>None|True|False)\b|(?P<call>[A-Za-z_][\w.]*+\((?:[^()'\"]++|'[^'\\]*+'|\"[^\"\\]*+\")*+\))"
    rb"|(?P<key>-?\w[\w.+-]*+)(?=\s*+:)|(?P<constant>-?(?:nan|inf))\b)",
    re.DOTALL,
)
_SPELLINGS = {b"None": b"null", b"True": b"true", b"False": b"false", b"(": b"[", b")": b"]", b",": b" "}
"""Each as long as the other."""
_ESCAPE = re.compile(rb"\\(x[\da-fA-F]{2}|U[\da-fA-F]{8}|.)|\"", re.DOTALL)
_QUOTED = re.compile(rb"(?:decimal\.)?Decimal\('([^']*+)'\)|(?:uuid\.)?UUID\('([^']*+)'\)")
_NUMBER = re.compile(rb"-?(?:0|[1-9]\d*+)(?:\.\d++)?+")
_TIME = re.compile(
    rb"(?:datetime\.)?(?:datetime|date)\((\d{1,4}), (\d\d?), (\d\d?)(?:, (\d\d?), (\d\d?)(?:, (\d\d?)(?:, (\d{1,6}))?)?)?\)"
)


def is_literal(text: bytes) -> bool:
    """Whether a text begins as Python prints lists and dicts."""
    return _LITERAL.match(text) is not None


def convert_literal(text: bytes) -> bytes:
    """Text is converted as it is; what has no name in JSON is text: a time as ISO 8601 writes it, any other call as it is."""
    return _TOKEN.sub(_convert, text)


def mask_literal(text: bytes) -> bytes:
    """The same structure as JSON, each part where it was. Quotes and escapes inside strings are masked."""
    return _TOKEN.sub(_mask, text)


def _convert(token: re.Match[bytes]) -> bytes:
    kind, found = token.lastgroup, token[0]
    if kind == "single" or kind == "double":
        return b'"%b"' % _ESCAPE.sub(_convert_escape, token[kind])
    if kind == "call":
        if time := _TIME.fullmatch(found):
            return b'"%b"' % _spell_time([int(part) for part in time.groups() if part]).encode()
        if (quoted := _QUOTED.fullmatch(found)) and quoted[2] is None and _NUMBER.fullmatch(quoted[1]):
            return quoted[1]
        return json.dumps((quoted[1] or quoted[2] if quoted else found).decode("utf-8", "replace")).encode()
    return b'"%b"' % found if kind in ("key", "constant") else _SPELLINGS[found]


def _convert_escape(escape: re.Match[bytes]) -> bytes:
    escaped = escape[1]
    if escaped is None:
        return rb"\""
    if escaped in b'"\\bfnrtu':
        return escape[0]
    if escaped[:1] in b"xU":
        number = int(escaped[1:], 16) if len(escaped) > 1 else 0xFFFD
        return json.dumps(chr(min(number, 0x10FFFF))).encode()[1:-1]
    return {b"'": b"'", b"a": rb"\u0007", b"v": rb"\u000b", b"0": rb"\u0000", b"\n": b""}.get(escaped, rb"\\" + escaped)


def _spell_time(parts: list[int]) -> str:
    year, month, day, *clock = parts
    if not clock:
        return f"{year:04}-{month:02}-{day:02}"
    hour, minute, second, fraction = [*clock, 0, 0][:4]
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}" + (f".{fraction:06}" if fraction else "")


def _mask(token: re.Match[bytes]) -> bytes:
    kind, found = token.lastgroup, token[0]
    if kind == "single" or kind == "double":
        return b'"%b"' % _blank(token[kind]).ljust(len(found) - 2) if found[-1:] in b"'\"" else found
    if kind in ("call", "key", "constant"):
        return b'"%b"' % _blank(found[1:-1]) if len(found) > 1 else found
    return _SPELLINGS[found]


def _blank(inside: bytes) -> bytes:
    return _ESCAPE.sub(lambda escape: b"_" * len(escape[0]), inside)
