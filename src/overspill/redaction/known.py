"""Finds known secret values in any encoding."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from overspill.redaction.finding import Finding
from overspill.redaction.names import read_meaning
from overspill.text.patterns import Pattern, Searched, compile_pattern, escape, find_groups
from overspill.text.regex import regex

MIN_CHARS, MAX_BYTES = 8, 16 << 10
_PATH = regex(r"(?:~|\.{0,2})(?:/[\w.@+ -]+){2,}/?|/[\w.-]+")
_MOST_WRITTEN = 16
"""The most bytes that encode one byte of a value, such as an entity with leading zeros, or an escape in JSON inside JSON."""
_ANCHOR_UNITS, _PIECE_UNITS, _ESCAPE_BYTES = 8, 128, 1024
_SHORT_ESCAPES = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_ENTITIES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_LOOSE = regex(r"\\|\n[ \t]*")
"""Characters whose patterns may also take what belongs to the next one: backslashes, and the indentation of a line."""
_LINE_BREAK = rb"(?:[\r\n]|\\+[rn])*"
_LEADING_BACKSLASHES = regex(rb"(\(\?:|\|)\\\\([*+])")
"""Optional or repeated backslashes at the beginning of an alternative spelling, in a character's pattern."""
_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")


def pick_secrets(named: Mapping[str, str]) -> dict[str, str]:
    """Picks values with names like secrets, if the values are distinguishable from other text."""
    return {
        name: value
        for name, value in named.items()
        if read_meaning(name.lower().removesuffix("id")) and _can_be_secret(name, value.strip())
    }


def _can_be_secret(name: str, value: str) -> bool:
    is_said_by_name = value.lower() in name.lower()  # as in POSTGRES_PASSWORD=postgres
    return len(value) >= MIN_CHARS and len(value.encode()) <= MAX_BYTES and not is_said_by_name and not _PATH.fullmatch(value)


class _Form(Struct, frozen=True, dict=True):
    """A value in one encoding: the pattern of each of its characters."""

    kind: str
    value: bytes
    units: list[bytes]
    is_base64: bool = False
    loose: frozenset[int] = frozenset()
    """The units after which no piece may end."""

    @cached_property
    def pieces(self) -> list[Pattern]:
        """The patterns for comparing a long value piece by piece."""
        found, first = list[Pattern](), 0
        while first < len(self.units):
            end = first + _PIECE_UNITS
            while end - 1 in self.loose:
                end += 1
            found.append(compile_pattern(b"".join(self.units[first:end]), max_memory=64 << 20))
            first = end
        return found

    def find_end(self, data: Searched, start: int) -> int:
        """Where a value that begins at `start` ends, or -1."""
        for pattern in self.pieces:
            spans = find_groups(pattern, data, start, len(data), anchored=True)
            if not spans:
                return -1
            start = spans[0][1]
        return start


class KnownValues:
    def __init__(self, named: Mapping[str, str]) -> None:
        """`named`: secret values by name."""
        self._forms = [form for name, value in named.items() for form in _write_forms(name, value.strip())]
        self.anchors = b"|".join(b"".join(form.units[:_ANCHOR_UNITS]) for form in self._forms)
        """A pattern for the places to look at."""
        self.longest = _MOST_WRITTEN * max((len(form.value) for form in self._forms), default=0)
        """The most bytes that a value can take in any encoding."""
        self._anchor = compile_pattern(self.anchors, max_memory=64 << 20) if self._forms else None

    def begins_at(self, data: Searched, start: int) -> bool:
        """Whether a value may begin here."""
        return self._anchor is not None and bool(find_groups(self._anchor, data, start, len(data), anchored=True))

    def find(self, data: Searched, start: int) -> Iterator[Finding]:
        """The values that begin here."""
        escapes = bytes(data[max(0, start - _ESCAPE_BYTES) : start])
        for form in self._forms:
            if (end := form.find_end(data, start)) < 0:
                continue
            # The characters around base64 hold some bits of the value, and backslashes belong to the character they escape.
            before = len(escapes) - len(escapes.rstrip(b"\\")) if not form.value[:1].isalnum() else 0
            before = before or (form.is_base64 and start > 0 and data[start - 1] in _BASE64)
            after = form.is_base64 and end < len(data) and data[end] in _BASE64
            yield Finding(start - before, end + after, form.kind, form.value, rank=0)


def _write_forms(name: str, value: str) -> Iterator[_Form]:
    kind, data = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"), value.encode("utf-8", "surrogatepass")
    loose = frozenset(place for found in _LOOSE.finditer(value) for place in range(*found.span()))
    yield _Form(kind, data, _separate([_spell_character(character) for character in value], b""), loose=loose)
    yield _Form(kind, data, _separate([_spell_hex(f"{byte:02x}") for byte in data], _LINE_BREAK))
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + data)
        whole = encoded[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6]
        yield _Form(kind, data, _separate([_spell_base64(byte) for byte in whole], _LINE_BREAK), is_base64=True)


def _spell_character(character: str) -> bytes:
    """A pattern for a character in plain text, a URL, HTML, or JSON at any depth: each level doubles the backslashes."""
    written = character.encode("utf-8", "surrogatepass")
    plain = escape(written)
    ways = [plain if character.isalnum() else rb"\\*" + plain]
    ways.append(b"".join(rb"%" + _spell_hex(f"{byte:02x}") for byte in written))
    units = character.encode("utf-16-be", "surrogatepass")
    ways.append(b"".join(rb"\\+u" + _spell_hex(units[at : at + 2].hex()) for at in range(0, len(units), 2)))
    ways.append(rb"&#0{0,6}(?:%d|[xX]0{0,6}%s);?" % (ord(character), _spell_hex(f"{ord(character):x}")))
    if short := _SHORT_ESCAPES.get(character):
        ways.append(rb"\\+" + short.encode())
    if entity := _ENTITIES.get(character):
        ways.append(f"&{entity};".encode())
    if character == '"':  # CSV doubles quotation marks
        ways.append(rb'\\*""')
    if character == "\n":
        ways.append(rb"\r?\n[ \t]{0,32}")
    if character == " ":
        ways.append(rb"\+")
    return b"(?:" + b"|".join(reversed(ways)) + b")"


def _separate(units: list[bytes], by: bytes) -> list[bytes]:
    """The units without optional backslashes in the first one: a long row of backslashes would be searched from each of them."""
    first = _LEADING_BACKSLASHES.sub(lambda found: found[1] + (rb"\\" if found[2] == b"+" else b""), units[0])
    return [first, *(by + unit for unit in units[1:])]


def _spell_hex(digits: str) -> bytes:
    return b"".join(f"[{digit}{digit.upper()}]".encode() if digit.isalpha() else digit.encode() for digit in digits)


def _spell_base64(byte: int) -> bytes:
    return {b"+": rb"(?:[+-]|%2[bB])", b"/": rb"(?:\\*/|_|%2[fF])"}.get(bytes([byte]), bytes([byte]))
