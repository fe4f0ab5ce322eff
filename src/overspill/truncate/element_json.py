"""Outlines JSON as valid JSON: the ends of arrays, the first keys of objects, shortened strings.

Numbers keep their spelling, and duplicate keys are shown. A number too long to show becomes a shortened string.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from json import JSONDecoder
from json.encoder import encode_basestring
from typing import NoReturn, TypeAlias

from msgspec import Struct

from overspill.text.regex import regex
from overspill.truncate.shape import ELLIPSIS, Shape, omitted_in_string, say_omitted
from overspill.truncate.shrink import Level, find_largest, grow_level, join_within, shrink_levels

_NOTHING_FITS = f'"{ELLIPSIS}"'
_INDENTED = regex(r"[ \t\r\n]*[\[{]\r?\n([ \t]+)")
_LINE = regex(r"[^ \t\r\n][^\n]*")
_SURROGATE = regex(r"[\ud800-\udfff]")


class Verbatim(Struct, frozen=True):
    """A token shown exactly as in the source."""

    token: str


class Members(Struct, frozen=True):
    """An object with all its pairs, duplicate keys included."""

    pairs: list[tuple[str, Json]]


_NESTED = frozenset((list, Members))

Json: TypeAlias = bool | str | Verbatim | list["Json"] | Members | None


def outline_json(text: str, limit: int, shape: Shape) -> str | None:
    """Outlines one JSON document or one per line, indented like the source if that fits.

    Returns None if this is not JSON, or if not even `"…"` fits, because `[]` or `0` would be untrue.
    """
    if limit < len(_NOTHING_FITS):
        return None
    try:
        root: Json = _DECODER.decode(text)
    except ValueError:
        return _outline_documents(text, limit, shape)
    found = find_largest(lambda level, longest: _Outline(level, longest, shape.head_ratio).value(root, 1), limit, shape)
    if not found:
        return _NOTHING_FITS
    compact, level, longest = found
    if not (indented := _INDENTED.match(text)):
        return compact
    return join_within(_Outline(level, longest, shape.head_ratio, indented[1]).value(root, 1), limit) or compact


def _outline_documents(text: str, limit: int, shape: Shape) -> str | None:
    """Several documents: whole lines if the first and last fit, otherwise outlines. None for a column of numbers."""
    verbatim: list[Json] = []
    documents: list[Json] = []
    try:
        for line in _LINE.finditer(text):
            if line[0][0] not in "[{":
                return None
            documents.append(_DECODER.decode(line[0]))
            verbatim.append(Verbatim(line[0].rstrip(" \t\r")))
    except ValueError:
        return None
    if not documents:
        return None

    def write(level: Level) -> str | None:
        return join_within(_Outline(level, len(text), shape.head_ratio).documents(verbatim), limit)

    for level in shrink_levels(shape):
        if level.first + level.last and write(level) is not None:
            return write(grow_level(level, limit, shape, lambda level: write(level) is not None))
    found = find_largest(lambda level, longest: _Outline(level, longest, shape.head_ratio).documents(documents), limit, shape)
    return found[0] if found else _NOTHING_FITS


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = JSONDecoder(object_pairs_hook=Members, parse_int=Verbatim, parse_float=Verbatim, parse_constant=_refuse)


class _Outline(Struct, frozen=True):
    """Writes values. The root has depth 1."""

    shown: Level
    longest: int
    head_ratio: float
    indent: str = ""

    def documents(self, documents: list[Json]) -> Iterator[str]:
        return _separate(self.items(documents, 1), "\n")

    def value(self, value: Json, depth: int) -> Iterable[str]:
        if isinstance(value, str):
            return (_quote(self.shorten(value)),)
        if isinstance(value, Verbatim):
            return (value.token if len(value.token) <= self.longest else _quote(self.shorten(value.token)),)
        if isinstance(value, list):
            return self.array(value, depth)
        if isinstance(value, Members):
            return self.object(value.pairs, depth)
        return ("null" if value is None else "true" if value else "false",)

    def array(self, items: list[Json], depth: int) -> Iterable[str]:
        if depth <= self.shown.depth:
            return self.open("[", self.items(items, depth + 1), "]", depth)
        everything = _separate((self.value(item, depth) for item in items), ",")
        return self.close_container("[", items, everything, _quote(f"... {say_omitted(len(items), 'item')} ..."), "]")

    def object(self, pairs: list[tuple[str, Json]], depth: int) -> Iterable[str]:
        if depth <= self.shown.depth:
            return self.open("{", self.members(pairs, depth + 1), "}", depth)
        everything = _separate((self.member(*pair, depth) for pair in pairs), ",")
        return self.close_container("{", [value for _, value in pairs], everything, self.mark_keys(pairs, len(pairs)), "}")

    def open(self, left: str, parts: Iterator[Iterable[str]], right: str, depth: int) -> Iterator[str]:
        newline = "\n" + self.indent * depth if self.indent else ""
        first = next(parts, None)
        yield left
        if first is not None:
            yield newline
            yield from first
            for part in parts:
                yield "," + newline
                yield from part
            yield newline.removesuffix(self.indent)
        yield right

    def close_container(
        self, left: str, values: list[Json], everything: Iterator[str], omission: str, right: str
    ) -> Iterable[str]:
        """A container that shows only its number of entries, or the entries themselves if they are not longer."""
        nested = len(values) > len(omission) or not _NESTED.isdisjoint(map(type, values))
        inside = None if nested else join_within(everything, len(omission))
        return (left, omission if inside is None else inside, right)

    def items(self, items: list[Json], depth: int) -> Iterator[Iterable[str]]:
        omitted = max(0, len(items) - self.shown.first - self.shown.last)
        first = self.shown.first if omitted else len(items)
        for item in items[:first]:
            yield self.value(item, depth)
        if omitted:
            yield (_quote(f"... {say_omitted(omitted, 'item')} ..."),)
        for item in items[first + omitted :]:
            yield self.value(item, depth)

    def members(self, pairs: list[tuple[str, Json]], depth: int) -> Iterator[Iterable[str]]:
        for pair in pairs[: self.shown.keys]:
            yield self.member(*pair, depth)
        if len(pairs) > self.shown.keys:
            yield (self.mark_keys(pairs, len(pairs) - self.shown.keys),)

    def member(self, key: str, value: Json, depth: int) -> Iterator[str]:
        yield _quote(key) + self.colon
        yield from self.value(value, depth)

    def mark_keys(self, pairs: list[tuple[str, Json]], count: int) -> str:
        names = dict(pairs)
        key = "..."
        while key in names:
            key += "."
        return _quote(key) + self.colon + _quote(say_omitted(count, "key"))

    @property
    def colon(self) -> str:
        return ": " if self.indent else ":"

    def shorten(self, text: str) -> str:
        if len(text) <= self.longest:
            return text
        room = self.longest - len(omitted_in_string(len(text)))
        if room < 1:
            return text[: self.longest - 1] + ELLIPSIS
        head = int(room * self.head_ratio)
        return text[:head] + omitted_in_string(len(text) - room) + text[len(text) - room + head :]


def _separate(parts: Iterable[Iterable[str]], separator: str) -> Iterator[str]:
    for index, part in enumerate(parts):
        if index:
            yield separator
        yield from part


def _quote(text: str) -> str:
    quoted = encode_basestring(text)
    return quoted if quoted.isascii() else _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
