"""Finds secrets in text and replaces them with marks."""

from __future__ import annotations

import base64
import hmac
import secrets
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

from overspill.errors import RefError
from overspill.redaction.finding import Finding
from overspill.redaction.known import MIN_CHARS, KnownValues
from overspill.redaction.shapes import REACH_BYTES, VALUE_BYTES, Rule, read_shapes
from overspill.store.recent import Recent
from overspill.text import encoding
from overspill.text.lines import count_line_ends
from overspill.text.patterns import Pattern, Searched, compile_pattern, find_groups, find_spans
from overspill.text.regex import regex

_MARK_CHARS = 8
_MAX_REMEMBERED = 100_000
"""How many secrets to remember from the latest texts, and how many values to fill in."""
_JSON_TOKEN = compile_pattern(rb'"(?:[^"\\]|\\.)*"|-?[0-9][-+.0-9eE]*')
_JSON_START = regex(rb"\s*[\[{]")
_NUMBER = regex(rb"[-+.0-9eE]+")


class Replacement(Struct, frozen=True):
    """The place of a secret, and the mark to show instead."""

    start: int
    end: int
    kind: str
    mark: bytes
    is_number: bool = False
    """Whether it is a number in JSON. The mark is then a string."""


class Redactor:
    """A redactor always gives a value the same mark. Different redactors give it different marks."""

    def __init__(self, known: Mapping[str, str], patterns: Mapping[str, str], *, remembers: bool = False) -> None:
        """`known`: secrets by name. `patterns`: RE2 patterns of secrets, by name. `remembers`: keep values for `get_value`."""
        self._remembers = remembers
        self._own: dict[str, Pattern] = {
            name: compile_pattern(spelling.encode(), utf8=True) for name, spelling in patterns.items()
        }
        self._values, self._known = dict(known), KnownValues(known)
        self._marked: dict[str, bytes] = {}
        self._key = secrets.token_bytes(32)
        self._found: Recent[str, list[Replacement]] = Recent(_MAX_REMEMBERED, lambda found: len(found) + 1)

    def find(self, data: Searched, sha256: str = "") -> list[Replacement]:
        """All replacements, in order. Overlapping secrets share one mark. `sha256` is of the data, to search it only once."""
        if sha256 and (remembered := self._found.get(sha256)) is not None:
            return remembered
        replaced: list[Finding] = []
        # The first of several overlapping secrets determines the mark. Known values come first.
        for each in sorted(self._search(data), key=lambda each: (each.start, each.rank)):
            last = replaced[-1] if replaced else None
            if last is None or each.start >= last.end:
                replaced.append(each)
            elif each.end > last.end:
                replaced[-1] = Finding(last.start, each.end, last.kind, b"")
        found = self._write_marks(data, replaced)
        if sha256:
            self._found[sha256] = found
        return found

    def find_settled_end(self, data: Searched) -> int:
        """The end of the part of a growing text that is safe to show: no incomplete secret begins before it."""
        margin = REACH_BYTES + self._known.longest
        end, first = max(0, len(data) - margin), max(0, len(data) - 2 * margin)
        tail = bytes(data[first:])
        if (line_end := tail.rfind(b"\n", 0, end - first)) >= 0:
            end = first + line_end + 1
        return max([end, *(first + each.end for each in self.find(tail) if first + each.start < end)])

    def redact(self, text: str) -> str:
        data = encoding.encode(text)
        found = self.find(data)
        return encoding.decode(apply(data, found)) if found else text

    def get_value(self, name: str) -> str:
        """The value of the mark with this name. From then on, it counts as known and is hidden in other forms as well. Raises
        RefError if it is too short for that."""
        value = encoding.decode(self._marked[name])
        if len(value) < MIN_CHARS:
            raise RefError(f"The value of the mark {name} is too short to be hidden when it comes back. The tool was not called.")
        if value not in self._values.values():
            self._values[name] = value
            self._known = KnownValues(self._values)
        return value

    def _search(self, data: Searched) -> Iterator[Finding]:
        """Searches the text once for known values and for the keywords of rules. Overlapping secrets are all found."""
        shapes, at, hidden, windows = read_shapes(), 0, 0, dict[Rule, list[list[int]]]()
        pattern, words = _compile_filter(self._known.anchors), _compile_filter(b"")
        while spans := find_groups(pattern, data, at, len(data)):
            start, end = spans[0]
            at = max(start + 1, end - VALUE_BYTES)
            if self._known.begins_at(data, start):
                yield from self._known.find(data, start)
                at = start + 1
                _, end = next(iter(find_groups(words, data, start, len(data), anchored=True)), (start, start))
            for rule in shapes.list_rules(bytes(data[start:end])) if end > start else ():
                if isinstance(rule, Rule) and not rule.named:
                    rule.add_window(windows.setdefault(rule, []), start, end, len(data))
                elif start >= hidden:
                    for found in rule.find(data, start, min(len(data), start + rule.reach)):
                        hidden = found.end
                        yield found
        for rule, several in windows.items():
            for start, end in several:
                yield from rule.find(data, start, end)
        for kind, own in self._own.items():
            spans = ((start, end) for start, end in find_spans(own, data, 0, len(data)) if end > start)
            yield from (Finding(start, end, kind, bytes(data[start:end])) for start, end in spans)

    def _write_marks(self, data: Searched, found: list[Finding]) -> list[Replacement]:
        numbers = _find_numbers(data, found)
        replaced: list[Replacement] = []
        for each in found:
            start, end = each.start, each.end
            name = self._name(each.value or bytes(data[start:end]))
            mark = f"[redacted:{each.kind}:{name}]".encode()
            number = numbers[max(0, bisect_right(numbers, (start, len(data))) - 1)] if numbers else (0, 0)
            is_number = number[0] <= start < end <= number[1]
            if is_number:
                (start, end), mark = number, b'"%s"' % mark
            breaks = count_line_ends(bytes(data[start:end]))  # keeps the line numbers
            replaced.append(Replacement(start, end, each.kind, mark + b"\n" * breaks, is_number))
        return replaced

    def _name(self, value: bytes) -> str:
        digest = hmac.digest(self._key, value, "sha256")
        name = base64.b32encode(digest)[:_MARK_CHARS].decode().lower()
        if self._remembers and len(self._marked) < _MAX_REMEMBERED:
            self._marked[name] = value
        return name


@lru_cache(4)
def _compile_filter(anchors: bytes) -> Pattern:
    """The pattern of the filter. Sessions with the same known values share it, because it gets faster with use."""
    return compile_pattern(b"|".join(filter(None, (anchors, read_shapes().filter))), max_memory=64 << 20)


def apply(data: Searched, found: list[Replacement]) -> bytes:
    pieces, at = list[bytes](), 0
    for each in found:
        pieces += (bytes(data[at : each.start]), each.mark)
        at = each.end
    return b"".join((*pieces, bytes(data[at:])))


def count_kinds(found: list[Replacement]) -> dict[str, int]:
    return dict(Counter(each.kind for each in found).most_common())


def _find_numbers(data: Searched, found: list[Finding]) -> list[tuple[int, int]]:
    """The numbers in JSON, in order, if any may be a secret."""
    may_be = any(_NUMBER.fullmatch(bytes(data[each.start : each.end])) for each in found)
    if not may_be or not _JSON_START.match(bytes(data[:64])):
        return []
    return [span for span in find_spans(_JSON_TOKEN, data, 0, len(data)) if data[span[0]] != ord('"')]
