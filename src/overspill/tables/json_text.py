"""Finds JSON in text. It may be all of the text, follow a few words, or be in a fence, a string or Python's notation.

Converts Python values such as `[{'id': 1, 'of': None}]` to JSON without evaluating anything.
"""

from __future__ import annotations

import json
from decimal import Decimal
from math import isfinite

import msgspec
from msgspec import Raw, Struct

from overspill.tables.table import Omission, Text
from overspill.text.regex import Match, regex

BOM = b"\xef\xbb\xbf"
_HEAD_BYTES = 48_000
_VALUE = (
    rb"(?:\{\s*+(?:\"(?:[^\"\\]++|\\.)*+\"\s*+:|\}|'(?:[^'\\]++|\\.)*+'\s*+:)"
    rb"|\[\s*+(?:[\[{\]\"(]|'[^'\n]*+'\s*+,"
    rb"|(?:-?(?:0|[1-9]\d*+)(?:\.\d++)?+(?:[eE][+-]?\d++)?+|true|false|null)\s*+(?:,|\][^\S\n]*+(?:[,\]\n]|\Z)))"
    rb"|\"(?:\\[nrt])*+[\[{](?:\\[nrt]|\s)*+(?:\\\"|[\[{]))"
)
_WORDS = rb"(?![ \t]*+[\[\]\"])[^\n{}<]{0,400}"
_LINES = rb"(?:%b+\n){0,4}?" % _WORDS
_AROUND = rb"%b(?:%b?:[ \t]*+\r?\n|[ \t]*+```+[ \t]*+(?:json|python)?[ \t]*+\r?\n)\s*+" % (_LINES, _WORDS)
"""A few words that end with a colon, or a fence."""
_START = regex(rb"(?:\xef\xbb\xbf)?\s*+(%b)?(?=%b)" % (_AROUND, _VALUE))
_END = regex(rb"[\]})\"]\s*+(?:```+)?+[^\[\]{}]{0,400}+\Z")
_ENDING_BYTES = 600
_MAX_EXACT_DIGITS = 15
_TRAILING = regex(r"trailing characters \(byte (\d+)\)")
DOCUMENT = msgspec.json.Decoder(Raw)
_LITERAL = regex(
    rb"\s*+(?:\[\s*+\(|(?:[\[({]\s*+)++(?:'[^'\n]{0,999}+'\s*+[:,]|[\w.+-]++\s*+[:,]\s*+(?:'|None\b|True\b|False\b)))"
)
_TOKEN = regex(
    rb"(?s)(?<![\w.])[bru]{0,2}'(?P<single>[^'\\]*+(?:\\.[^'\\]*+)*+)(?:'|\\?\Z)"
    rb"|(?<![\w.])[bru]{0,2}\"(?P<double>[^\"\\]*+(?:\\.[^\"\\]*+)*+)(?:\"|\\?\Z)"
    rb"|(?P<bracket>[()])|(?P<comma>,)(?=\s*+[)\]}])"
    rb"|(?<![\w.+-])(?:(?P<word>None|True|False)\b|(?P<call>[A-Za-z_][\w.]*+\((?:[^()'\"]++|'[^'\\]*+'|\"[^\"\\]*+\")*+\))"
    rb"|(?P<key>-?\w[\w.+-]*+)(?=\s*+:)|(?P<constant>-?(?:nan|inf))\b)",
)
_SPELLINGS = {b"None": b"null", b"True": b"true", b"False": b"false", b"(": b"[", b")": b"]", b",": b" "}
"""Both spellings have the same length."""
_ESCAPE = regex(rb"(?s)\\(x[\da-fA-F]{2}|U[\da-fA-F]{8}|.)|\"")
_CALLED = regex(rb"(?:decimal\.)?Decimal\('([^']*+)'\)|(?:uuid\.)?UUID\('([^']*+)'\)")
_NUMBER = regex(rb"-?(?:0|[1-9]\d*+)(?:\.\d++)?+")
_MOMENT = regex(
    rb"(?:datetime\.)?(?:datetime|date)\((\d{1,4}), (\d\d?), (\d\d?)(?:, (\d\d?), (\d\d?)(?:, (\d\d?)(?:, (\d{1,6}))?)?)?\)"
)


def read_float(digits: str) -> float | str:
    """Keeps the number as text if a floating-point number would change it."""
    number = float(digits)
    is_exact = isfinite(number) and (len(digits) <= _MAX_EXACT_DIGITS or Decimal(repr(number)) == Decimal(digits))
    return number if is_exact else digits


class HeldJson(Struct, frozen=True):
    """Consecutive documents, the text around them, and whether they were converted."""

    documents: list[memoryview]
    before: bytes = b""
    after: bytes = b""
    is_converted: bool = False
    unread: int = 0
    """How many lines are not documents, in text with one document per line."""

    @property
    def omissions(self) -> tuple[Omission, ...]:
        around = Omission(self.around, "of text around the JSON left out", "byte")
        unread = Omission(self.unread, "left out, which could not be read", "line")
        return tuple(each for each in (around, unread) if each.count)

    @property
    def around(self) -> int:
        return len(self.before) + len(self.after)


def find_start(head: bytes, ending: bytes) -> int:
    """Where the JSON begins, or -1. JSON after words must extend to the end, except for a few words below it."""
    found = _START.match(head)
    return found.end() if found and (found[1] is None or _END.search(ending[-_ENDING_BYTES:])) else -1


def begin_json(text: Text, start: int = 0, end: int | None = None) -> tuple[int, bool]:
    """Where the JSON of a text begins, and whether it is a list or dict printed by Python."""
    end = len(text) if end is None else end
    head = bytes(text[start : min(end, start + _HEAD_BYTES)])
    inside = max(0, find_start(head, bytes(text[max(start, end - _ENDING_BYTES) : end])))
    return start + inside, _LITERAL.match(head, inside) is not None


def hold_json(text: Text) -> HeldJson:
    """Find a text's documents. Raises msgspec.DecodeError if it is not JSON, and RecursionError if it is nested too deeply."""
    start, is_converted = begin_json(text)
    rest = memoryview(convert_literal(bytes(text[start:])) if is_converted else text)[0 if is_converted else start :]
    before = bytes(text[:start]).strip(b"\xef\xbb\xbf \t\r\n")
    try:
        return HeldJson(list(map(memoryview, DOCUMENT.decode_lines(rest))), before, b"", is_converted)
    except msgspec.DecodeError:
        documents: list[memoryview] = []
    while end := find_end(rest):
        documents.append(rest[:end])
        rest = rest[end:]
    if documents:
        return HeldJson(documents, before, bytes(rest).strip(), is_converted)
    # Some programs write NaN, lone surrogates, or control characters in strings.
    lenient = json.JSONDecoder(strict=False, parse_constant=str, parse_float=read_float)
    try:
        value, _ = lenient.raw_decode(bytes(text[start:]).decode("utf-8", "replace"))
    except ValueError as error:
        raise msgspec.DecodeError(f"JSON is malformed: {error}") from None
    return HeldJson([memoryview(json.dumps(value).encode("utf-8", "surrogatepass"))], before, b"", is_converted=True)


def find_end(raw: memoryview) -> int:
    """The end of the first document, or 0 if no document can be read."""
    try:
        DOCUMENT.decode(raw)
    except msgspec.DecodeError as error:
        found = _TRAILING.search(str(error))
        return int(found[1]) - 1 if found else 0
    return len(raw)


def convert_literal(text: bytes) -> bytes:
    """Converts Python's notation to JSON. Values that JSON lacks become text: times in ISO 8601, other calls unchanged."""
    return _TOKEN.sub(_convert, text)


def mask_literal(text: bytes) -> bytes:
    """The same structure as JSON, with all positions unchanged. Masks quotes and escapes inside strings."""
    return _TOKEN.sub(_mask, text)


def _convert(token: Match[bytes]) -> bytes:
    kind, found = token.lastgroup, token[0]
    if kind == "single" or kind == "double":
        return b'"%b"' % _ESCAPE.sub(_convert_escape, token[kind])
    if kind == "call":
        if time := _MOMENT.fullmatch(found):
            year, month, day, *clock = [int(part) for part in time.groups() if part]
            hour, minute, second, fraction = [*clock, 0, 0, 0, 0][:4]
            spelt = f"T{hour:02}:{minute:02}:{second:02}" + (f".{fraction:06}" if fraction else "") if clock else ""
            return f'"{year:04}-{month:02}-{day:02}{spelt}"'.encode()
        if (quoted := _CALLED.fullmatch(found)) and quoted[2] is None and _NUMBER.fullmatch(quoted[1]):
            return quoted[1]
        return json.dumps((quoted[1] or quoted[2] if quoted else found).decode("utf-8", "replace")).encode()
    return b'"%b"' % found if kind in ("key", "constant") else _SPELLINGS[found]


def _convert_escape(escape: Match[bytes]) -> bytes:
    escaped = escape[1]
    if escaped is None:
        return rb"\""
    if escaped in b'"\\bfnrtu':
        return escape[0]
    if escaped[:1] in b"xU":
        number = int(escaped[1:], 16) if len(escaped) > 1 else 0xFFFD
        return json.dumps(chr(min(number, 0x10FFFF))).encode()[1:-1]
    return {b"'": b"'", b"a": rb"\u0007", b"v": rb"\u000b", b"0": rb"\u0000", b"\n": b""}.get(escaped, rb"\\" + escaped)


def _mask(token: Match[bytes]) -> bytes:
    kind, found = token.lastgroup, token[0]
    if kind == "single" or kind == "double":
        return b'"%b"' % _blank(token[kind]).ljust(len(found) - 2) if found[-1:] in b"'\"" else found
    if kind in ("call", "key", "constant"):
        return b'"%b"' % _blank(found[1:-1]) if len(found) > 1 else found
    return _SPELLINGS[found]


def _blank(inside: bytes) -> bytes:
    return _ESCAPE.sub(lambda escape: b"_" * len(escape[0]), inside)
