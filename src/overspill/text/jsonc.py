"""Reads JSON with comments and trailing commas, and edits it in place.

Every value knows its span in the source. An edit replaces spans and leaves everything else untouched.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from overspill.errors import SettingsError
from overspill.text.lenient_json import dumps
from overspill.text.lines import line_and_column
from overspill.text.regex import regex

_MAX_DEPTH = 200
_MAX_INTEGER_DIGITS = 1000
_TRIVIA = regex(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?s:.*?)\*/)*+")
_STRING = regex(r'"(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+"')
_OTHER = regex(r"(?a)-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?(?![\w.])|(?:true|false|null)(?!\w)")
_INDENT = regex(r"\n([ \t]++)")

Kind = Literal["object", "array", "string", "other"]


class Node(Struct, frozen=True):
    """One value. An object has `keys` and as many `children`; an array has `children` only."""

    text: str
    start: int
    end: int
    kind: Kind
    children: tuple[Node, ...] = ()
    keys: tuple[Node, ...] = ()

    @property
    def raw(self) -> str:
        return self.text[self.start : self.end]

    @property
    def value(self) -> Any:
        if self.kind == "object":
            return {key.value: child.value for key, child in zip(self.keys, self.children, strict=True)}
        if self.kind == "array":
            return [child.value for child in self.children]
        return json.loads(self.raw, parse_int=_number)

    @property
    def names(self) -> list[str]:
        return [key.value for key in self.keys]

    @property
    def duplicate_key(self) -> str:
        """A key that occurs more than once, or an empty string."""
        return next((name for name, count in Counter(self.names).items() if count > 1), "")

    def get(self, *path: str) -> Node | None:
        """The value that these keys lead to. None if one of them is missing, or does not lead to an object."""
        node = self
        for name in path:
            if name not in (names := node.names):
                return None
            node = node.children[names.index(name)]
        return node

    def key(self, name: str) -> Node:
        return self.keys[self.names.index(name)]


class Edit(NamedTuple):
    start: int
    end: int
    text: str


def scan(text: str, name: str) -> Node:
    """Parses a document. Errors refer to it by `name`."""
    scanner = _Scanner(text, name)
    node = scanner.node(_skip(text, 1 if text.startswith("\ufeff") else 0))
    rest = _skip(text, node.end)
    if rest < len(text):
        raise scanner.problem(rest, "there is more after the end")
    return node


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Replaces spans. Edits at the same position are applied in the order given."""
    pieces: list[str] = []
    done = 0
    for start, end, replacement in sorted(edits, key=lambda edit: edit[:2]):
        pieces += (text[done:start], replacement)
        done = end
    return "".join([*pieces, text[done:]])


def replace(node: Node, raw: str) -> Edit:
    return Edit(node.start, node.end, raw)


def insert(container: Node, parts: Sequence[str]) -> Edit:
    """Inserts parts at the start of an array or object, in the layout of its first entry."""
    if not container.children:
        return Edit(container.start + 1, container.start + 1, ", ".join(parts))
    first = (container.keys or container.children)[0].start
    between = "," + _layout(container.text, first)
    return Edit(first, first, "".join(part + between for part in parts))


def append(container: Node, after: str, member: str) -> Edit:
    """Inserts a member right after another one, in the same layout."""
    place = container.get(after)
    assert place is not None
    return Edit(place.end, place.end, f",{_layout(container.text, container.key(after).start)}{member}")


def remove(container: Node, indexes: Sequence[int]) -> list[Edit]:
    """Removes entries; the inverse of `insert` and `append`. Comments around them stay."""
    gone = dict.fromkeys(sorted(indexes))
    firsts = [index for index in gone if index - 1 not in gone]
    lasts = [index for index in gone if index + 1 not in gone]
    return [edit for first, last in zip(firsts, lasts, strict=True) for edit in _remove_run(container, first, last)]


def write_like_first(container: Node, value: Any) -> str:
    """JSON for a new entry. Spans several lines, indented like the file, if the container's first entry starts on a new line."""
    first = next(iter(container.keys or container.children), None)
    layout = _layout(container.text, first.start) if first else " "
    if layout == " ":
        return json.dumps(value, ensure_ascii=False)
    step = _INDENT.search(container.text)
    return json.dumps(value, indent=step[1] if step else 2, ensure_ascii=False).replace("\n", layout)


def quote(value: str) -> str:
    return dumps(value).decode()


def _number(digits: str) -> float:
    """A number. A very long one becomes a float: int() refuses thousands of digits, and no config file needs them all."""
    return int(digits) if len(digits) < _MAX_INTEGER_DIGITS else float(digits)


def _remove_run(container: Node, first: int, last: int) -> list[Edit]:
    text, begins = container.text, [node.start for node in container.keys or container.children]
    begin, end = begins[first], container.children[last].end
    if first:
        before = container.children[first - 1].end
        comma = _skip(text, before)
        bare = text[before:begin].strip() == ","
        return [Edit(before, end, "")] if bare else [Edit(comma, comma + 1, ""), Edit(begin, end, "")]
    comma = _skip(text, end)
    if text[comma] != ",":
        return [Edit(begin, end, "")]
    if last + 1 < len(begins) and text[end : begins[last + 1]].strip() == ",":
        return [Edit(begin, begins[last + 1], "")]
    return [Edit(begin, end, ""), Edit(comma, comma + 1, "")]


def _layout(text: str, place: int) -> str:
    """The line break and indentation before `place`, or a space."""
    start = place
    while start and text[start - 1] in " \t":
        start -= 1
    if not start or text[start - 1] not in "\r\n":
        return " "
    return text[start - 2 if text[start - 2 : start] == "\r\n" else start - 1 : place]


def _skip(text: str, at: int) -> int:
    """The position after spaces and comments."""
    found = _TRIVIA.match(text, at)
    assert found is not None
    return found.end()


class _Scanner:
    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name

    def node(self, at: int, depth: int = 0) -> Node:
        if depth > _MAX_DEPTH:
            raise self.problem(at, "nested too deeply")
        opening = self._text[at : at + 1]
        if opening in ("{", "["):
            return self._container(at, depth)
        kind, match = ("string", _STRING.match) if opening == '"' else ("other", _OTHER.match)
        found = match(self._text, at)
        if not found:
            raise self.problem(
                at, "this string is not closed or has an invalid character" if opening == '"' else "a value is missing"
            )
        return Node(self._text, at, found.end(), kind)

    def problem(self, at: int, what: str) -> SettingsError:
        line, column = line_and_column(self._text, at)
        return SettingsError(f"{self._name} is not usable JSON, line {line}, column {column}: {what}.")

    def _container(self, start: int, depth: int) -> Node:
        text = self._text
        kind, close = ("object", "}") if text[start] == "{" else ("array", "]")
        keys: list[Node] = []
        children: list[Node] = []
        at = _skip(text, start + 1)
        while text[at : at + 1] != close:
            if kind == "object":
                if text[at : at + 1] != '"':
                    raise self.problem(at, 'a key in "…" is missing')
                keys.append(self.node(at))
                at = self._after(":", keys[-1].end)
            children.append(self.node(at, depth + 1))
            at = _skip(text, children[-1].end)
            if text[at : at + 1] != close:
                at = self._after(",", at)
        return Node(text, start, at + 1, kind, tuple(children), tuple(keys))

    def _after(self, mark: str, at: int) -> int:
        at = _skip(self._text, at)
        if self._text[at : at + 1] != mark:
            raise self.problem(at, f"{mark!r} is missing")
        return _skip(self._text, at + 1)
