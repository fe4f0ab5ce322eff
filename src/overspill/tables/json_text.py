"""Finds the JSON in a text: all of it, or what follows a few words, is in a fence, or is one string."""

from __future__ import annotations

import json
import re

import msgspec
from msgspec import Raw, Struct

from overspill.tables.json_rows import read_float
from overspill.tables.literals import convert_literal, is_literal
from overspill.tables.table import Text

HEAD_BYTES = 48_000
_VALUE = (
    rb"(?:\{\s*+(?:\"(?:[^\"\\]++|\\.)*+\"\s*+:|\}|'(?:[^'\\]++|\\.)*+'\s*+:)"
    rb"|\[\s*+(?:[\[{\]\"(]|'[^'\n]*+'\s*+,"
    rb"|(?:-?(?:0|[1-9]\d*+)(?:\.\d++)?+(?:[eE][+-]?\d++)?+|true|false|null)\s*+(?:,|\][^\S\n]*+(?:[,\]\n]|\Z)))"
    rb"|\"(?:\\[nrt])*+[\[{](?:\\[nrt]|\s)*+(?:\\\"|[\[{]))"
)
_LINES = rb"(?:[^\n\[{}<]{0,400}+\n){0,4}?"
_AROUND = rb"%b(?:[^\n\[{}<]{0,400}?:[ \t]*+\r?\n|[ \t]*+```+[ \t]*+(?:json|python)?[ \t]*+\r?\n)\s*+" % _LINES
"""A few words that end with a colon, or a fence."""
_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(%b)?(?=%b)" % (_AROUND, _VALUE))
_END = re.compile(rb"[\]})\"]\s*+(?:```+)?+[^\[\]{}]{0,400}+\Z")
ENDING_BYTES = 600
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_DOCUMENT = msgspec.json.Decoder(Raw)


class HeldJson(Struct, frozen=True):
    """The documents in a text, one after the other, what is around them, and whether they were spelt otherwise."""

    documents: list[memoryview]
    before: bytes = b""
    after: bytes = b""
    is_converted: bool = False

    @property
    def around(self) -> int:
        return len(self.before) + len(self.after)


def find_start(head: bytes, ending: bytes) -> int:
    """Where the JSON in a text begins, or -1. What follows words must be all of the rest, but for some words below it."""
    found = _START.match(head)
    return found.end() if found and (found[1] is None or _END.search(ending[-ENDING_BYTES:])) else -1


def hold_json(text: Text) -> HeldJson:
    """Raises msgspec.DecodeError if there is none, and RecursionError if it is nested too deeply."""
    start = max(0, find_start(bytes(text[:HEAD_BYTES]), bytes(text[-ENDING_BYTES:])))
    is_converted = is_literal(bytes(text[start : start + HEAD_BYTES]))
    rest = memoryview(convert_literal(bytes(text[start:])) if is_converted else text)[0 if is_converted else start :]
    before = bytes(text[:start]).strip(b"\xef\xbb\xbf \t\r\n")
    try:
        return HeldJson([memoryview(raw) for raw in _DOCUMENT.decode_lines(rest)], before, b"", is_converted)
    except msgspec.DecodeError:
        documents: list[memoryview] = []
    while end := find_end(rest):
        documents.append(rest[:end])
        rest = rest[end:]
    if documents:
        return HeldJson(documents, before, bytes(rest).strip(), is_converted)
    return HeldJson([_read_leniently(bytes(text[start:]))], before, b"", is_converted=True)


def find_end(raw: memoryview) -> int:
    """Of the first document. 0 if there is none."""
    try:
        _DOCUMENT.decode(raw)
    except msgspec.DecodeError as error:
        found = _TRAILING.search(str(error))
        return int(found[1]) - 1 if found else 0
    return len(raw)


def _read_leniently(text: bytes) -> memoryview:
    """Some programs write NaN, lone surrogates, or control characters in strings."""
    try:
        value, _ = json.JSONDecoder(strict=False, parse_constant=str, parse_float=read_float).raw_decode(
            text.decode("utf-8", "replace")
        )
    except ValueError as error:
        raise msgspec.DecodeError(f"JSON is malformed: {error}") from None
    return memoryview(json.dumps(value).encode("utf-8", "surrogatepass"))
