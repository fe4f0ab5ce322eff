"""Values that are known to be secret, found in whichever encoding they appear."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec import Struct

from overspill.redaction.shapes import Finding
from overspill.text.patterns import Pattern, Searched, compile_pattern, escape
from overspill.text.regex import regex

MIN_CHARS, MAX_BYTES = 8, 16 << 10
_SECRET_NAME = regex(
    r"(?i)(?:^|[_.-])(?:(?:api|access|private|secret|signing|encryption|master|account)?[_.-]?key"
    r"|(?:\w*[_.-])?(?:token|secret|password|passwd|passphrase|pwd|pass|credentials?|creds|authorization|auth|cookie|apikey))"
    r"(?:$|[_.-](?:[a-z]|id|b64|base64|json|pem|value|[0-9]+)?$)"
)
_PATH = regex(r"(?:~|\.{0,2})(?:/[\w.@+ -]+){2,}/?|/[\w.-]+")
_ANCHOR_UNITS, _PIECE_UNITS = 8, 128
_SHORT_ESCAPES = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_ENTITIES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_LINE_BREAK = rb"(?:[\r\n]|\\{1,8}[rn]){0,4}"
_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")


def pick_secrets(named: Mapping[str, str]) -> dict[str, str]:
    """Those that have names like secrets, and values that can be told from other text."""
    return {name: value for name, value in named.items() if _SECRET_NAME.search(name) and _can_be_secret(name, value.strip())}


def _can_be_secret(name: str, value: str) -> bool:
    is_said_by_name = value.lower() in name.lower()  # POSTGRES_PASSWORD=postgres
    return len(value) >= MIN_CHARS and len(value.encode()) <= MAX_BYTES and not is_said_by_name and not _PATH.fullmatch(value)


class _Form(Struct, frozen=True):
    """A value in one encoding: the pattern of each of its characters."""

    kind: str
    value: bytes
    units: list[bytes]
    is_base64: bool = False

    def match(self, data: Searched, start: int) -> int:
        """Where the value ends that begins here, or -1. A long value is compared piece by piece."""
        for first in range(0, len(self.units), _PIECE_UNITS):
            pattern: Any = compile_pattern(b"".join(self.units[first : first + _PIECE_UNITS]))
            found = pattern.match(data, start)
            if found is None:
                return -1
            start = cast("int", found.end())
        return start


class KnownValues:
    def __init__(self, named: Mapping[str, str]) -> None:
        """`named`: all of them are secrets."""
        self._forms = [form for name, value in named.items() for form in _write_forms(name, value.strip())]
        anchors = [b"".join(form.units[:_ANCHOR_UNITS]) for form in self._forms]
        self._anchors: Pattern | None = compile_pattern(b"|".join(anchors), max_memory=64 << 20) if anchors else None

    def find(self, data: Searched) -> Iterator[Finding]:
        at, done = 0, 0
        while self._anchors is not None and (anchor := self._anchors.search(data, at)) is not None:
            start, at = anchor.start(), anchor.start() + 1  # values may overlap
            found = [(end, form) for form in self._forms if (end := form.match(data, start)) > done]
            if not found:
                continue
            done, form = max(found, key=lambda each: each[0])
            if form.is_base64:  # the characters at its ends hold some of its bits
                start -= start > 0 and data[start - 1] in _BASE64
                done += done < len(data) and data[done] in _BASE64
            yield Finding(start, done, form.kind, form.value)


def _write_forms(name: str, value: str) -> Iterator[_Form]:
    kind, data = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"), value.encode("utf-8", "surrogatepass")
    yield _Form(kind, data, [_spell_character(character) for character in value])
    yield _Form(kind, data, _break_lines([_spell_hex(f"{byte:02x}") for byte in data]))
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + data)
        whole = encoded[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6]
        yield _Form(kind, data, _break_lines([_spell_base64(byte) for byte in whole]), is_base64=True)


def _spell_character(character: str) -> bytes:
    """As it is, or as in a URL, in JSON, even inside other JSON, or in HTML."""
    written = character.encode("utf-8", "surrogatepass")
    plain = escape(written)
    ways = [plain if character.isalnum() else rb"\\{0,8}" + plain]
    ways.append(b"".join(rb"%" + _spell_hex(f"{byte:02x}") for byte in written))
    units = character.encode("utf-16-be", "surrogatepass")
    ways.append(b"".join(rb"\\{1,8}u" + _spell_hex(units[at : at + 2].hex()) for at in range(0, len(units), 2)))
    ways.append(rb"&#0{0,6}(?:%d|[xX]0{0,6}%s);?" % (ord(character), _spell_hex(f"{ord(character):x}")))
    if short := _SHORT_ESCAPES.get(character):
        ways.append(rb"\\{1,8}" + short.encode())
    if entity := _ENTITIES.get(character):
        ways.append(f"&{entity};".encode())
    if character == '"':  # in CSV
        ways.append(rb'\\{0,8}""')
    if character == "\n":
        ways.append(rb"\r?\n[ \t]{0,32}")
    if character == " ":
        ways.append(rb"\+")
    return b"(?:" + b"|".join(reversed(ways)) + b")"


def _break_lines(units: list[bytes]) -> list[bytes]:
    return [units[0], *(_LINE_BREAK + unit for unit in units[1:])]


def _spell_hex(digits: str) -> bytes:
    return b"".join(f"[{digit}{digit.upper()}]".encode() if digit.isalpha() else digit.encode() for digit in digits)


def _spell_base64(byte: int) -> bytes:
    return {b"+": rb"(?:[+-]|%2[bB])", b"/": rb"(?:\\{0,8}/|_|%2[fF])"}.get(bytes([byte]), bytes([byte]))
