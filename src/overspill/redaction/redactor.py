"""Finds secrets in text and puts marks in their place."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

from overspill.redaction.known import KnownValues
from overspill.redaction.shapes import Finding, read_shapes
from overspill.text import encoding
from overspill.text.lines import count_line_ends
from overspill.text.patterns import Pattern, Searched, compile_pattern
from overspill.text.regex import regex

_MARK_CHARS = 8
_JSON_STRING = compile_pattern(rb'"(?:[^"\\]|\\.)*"')
_JSON_START = regex(rb"\s*[\[{]")
_NUMBER = regex(rb"[-+.0-9eE]+")
_NUMBER_BYTES = b"-+.0123456789eE"


class Replacement(Struct, frozen=True):
    """A secret, by its place, and the mark to show instead."""

    start: int
    end: int
    kind: str
    mark: bytes
    is_number: bool = False
    """Whether it is a number in JSON, so that the mark is a string."""


class Redactor:
    """The same value gets the same mark from one redactor, and another from each other one."""

    def __init__(self, known: Mapping[str, str], patterns: Mapping[str, str]) -> None:
        """`known`: values that are secrets, by name. `patterns`: more of them, by name, in RE2's syntax."""
        self._own: dict[str, Pattern] = {
            name: compile_pattern(spelling.encode(), utf8=True) for name, spelling in patterns.items()
        }
        self._known = KnownValues(known)
        self._key = secrets.token_bytes(32)

    def find(self, data: Searched) -> list[Replacement]:
        """In order. Where several overlap, all of them go, under one mark."""
        # Known values first, then by place: the first of those that overlap gives the mark.
        findings = self._known.find(data), read_shapes().find(data, self._own)
        found = [(each.start, rank, each) for rank, several in enumerate(findings) for each in several]
        replaced: list[Finding] = []
        for _, _, each in sorted(found):
            last = replaced[-1] if replaced else None
            if last is None or each.start >= last.end:
                replaced.append(each)
            elif each.end > last.end:
                replaced[-1] = Finding(last.start, each.end, last.kind, b"")
        return self._write_marks(data, replaced)

    def redact(self, text: str) -> str:
        data = encoding.encode(text)
        found = self.find(data)
        return encoding.decode(apply(data, found)) if found else text

    def redact_value(self, value: Any) -> Any:
        """JSON with the strings in it redacted, and its numbers if they are secret. Anything else stays as it is."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            entries = cast("Mapping[Any, Any]", value)
            return {self.redact_value(key): self._redact_entry(key, entry) for key, entry in entries.items()}
        if isinstance(value, list | tuple):
            return [self.redact_value(entry) for entry in cast("list[Any]", value)]
        if isinstance(value, int | float) and not isinstance(value, bool):
            shown = self.redact(written := json.dumps([value]))
            return value if shown == written else json.loads(shown)[0]
        return value

    def _redact_entry(self, key: Any, entry: Any) -> Any:
        """Some values are secret because of the name in front of them."""
        cleaned = self.redact_value(entry)
        if isinstance(key, str) and isinstance(cleaned, str) and cleaned == entry:
            written = f"{json.dumps(key)}: {json.dumps(cleaned, ensure_ascii=False)}"
            redacted = self.redact(written)
            return cleaned if redacted == written else redacted.partition(": ")[2].strip('"')
        return cleaned

    def _write_marks(self, data: Searched, found: list[Finding]) -> list[Replacement]:
        strings = _find_strings(data, found)
        replaced: list[Replacement] = []
        for each in found:
            start, end = each.start, each.end
            name = self._name(each.value or bytes(data[start:end]))
            mark = f"[redacted:{each.kind}:{name}]".encode()
            number = None if strings is None or _is_inside(strings, start) else _find_number(data, start, end)
            if number is not None:
                (start, end), mark = number, b'"%s"' % mark
            breaks = count_line_ends(bytes(data[start:end]))  # so that lines keep their numbers
            replaced.append(Replacement(start, end, each.kind, mark + b"\n" * breaks, number is not None))
        return replaced

    def _name(self, value: bytes) -> str:
        digest = hmac.digest(self._key, value, "sha256")
        return base64.b32encode(digest)[:_MARK_CHARS].decode().lower()


def apply(data: Searched, found: list[Replacement], start: int = 0, end: int | None = None) -> bytes:
    """The bytes from `start` to `end` with marks. A secret at the border shows as a whole mark."""
    pieces, at = list[bytes](), start
    end = len(data) if end is None else end
    for each in found:
        if each.end > start and each.start < end:
            pieces += (bytes(data[at : each.start]), each.mark)
            at = max(at, each.end)
    pieces.append(bytes(data[at:end]))
    return b"".join(pieces)


def count_kinds(found: list[Replacement]) -> dict[str, int]:
    return dict(Counter(each.kind for each in found).most_common())


def _find_strings(data: Searched, found: list[Finding]) -> list[tuple[int, int]] | None:
    """The strings of JSON, if a number in it may be a secret; else None."""
    if not any(_NUMBER.fullmatch(bytes(data[each.start : each.end])) for each in found):
        return None
    if not _JSON_START.match(bytes(data[:64])):
        return None
    return [match.span() for match in _JSON_STRING.finditer(data)]


def _is_inside(spans: list[tuple[int, int]], place: int) -> bool:
    before = bisect_right(spans, (place, len(spans) and spans[-1][1])) - 1
    return before >= 0 and place < spans[before][1]


def _find_number(data: Searched, start: int, end: int) -> tuple[int, int] | None:
    """The whole number in JSON of which this is a part."""
    if not _NUMBER.fullmatch(bytes(data[start:end])):
        return None
    while start and data[start - 1] in _NUMBER_BYTES:
        start -= 1
    while end < len(data) and data[end] in _NUMBER_BYTES:
        end += 1
    return start, end
