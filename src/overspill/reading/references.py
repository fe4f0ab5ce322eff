"""Resolves references in arguments: before the tool runs, replaces each string that is exactly a reference with stored content.

`{{output:HANDLE}}` is the whole output, `{{output:HANDLE#/json/pointer}}` a value in it, `{{output:HANDLE#L10-20}}` some of its
lines. Write `\\{{output:` at the start of a string for the literal characters. Inserted content is not searched for references.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import reduce
from typing import Any, TypeAlias, cast

from msgspec import Struct

from overspill.errors import OverspillError, RefError
from overspill.reading.positions import View
from overspill.reading.query import Number, lookup
from overspill.reading.query.document import Value, is_array, is_object, open_raw, write_within
from overspill.reading.query.pointer import append_token
from overspill.reading.ranges import Bound
from overspill.store.protocols import Reader
from overspill.text.names import own_name
from overspill.text.regex import regex
from overspill.types import Kept, ToolCall

_NOT_TEXT = "the output is not text."
_NOT_FILLED = "The argument {path} cannot be filled in: {reason} The tool {tool} was not called."

_LITERAL = "\\{{output:"
_OPENINGS = ("{{output:", _LITERAL)
OPENING = b"{{output:"
"""Occurs in the JSON of any arguments that have a reference."""
_REFERENCE = regex(r"(?s)\{\{output:([^#{}]+)(?:#((?:(?!\}\}).)*))?\}\}")
_LINES = regex(r"L([1-9][0-9]{0,17})-([1-9][0-9]{0,17})")

Path: TypeAlias = tuple[str | int, ...]
Check: TypeAlias = Callable[[Mapping[str, Any]], str | None]
"""Returns what is wrong with the arguments, as a sentence, or None if they match the tool's schema."""


class ReferenceSource(Struct, frozen=True):
    """A stored output that a reference names."""

    reader: Reader
    kept: Kept
    view: View


Fetch: TypeAlias = Callable[[str], ReferenceSource]


class ReferenceUse(Struct, frozen=True):
    """A resolved reference: the output's id, the number of bytes, and its place in the arguments as a JSON pointer."""

    id: str
    bytes: int
    path: str


def resolve(
    call: ToolCall, fetch: Fetch, *, allow: Sequence[tuple[str, str]] = (), max_ref_bytes: int, check: Check | None = None
) -> tuple[Mapping[str, Any], list[ReferenceUse]]:
    """The call's arguments with references replaced, and a list of the references. Returns the same object without any.

    Content may pass between tools of one server, or of the host program (no server). Each pair in `allow` permits more: a source
    and a target, each a server's name or `server/tool` (the tool's own name or the one a model uses), where * matches anything.
    After a RefError, do not call the tool.
    """
    filling = _Filling(call, fetch, allow, max_ref_bytes)
    try:
        filled = filling.fill(call.args, ())
    except RecursionError:
        raise RefError(_NOT_FILLED.format(path="/", reason="it is nested too deeply.", tool=call.name)) from None
    if check and filling.uses and (reason := check(filled)):
        raise RefError(
            f"With the references filled in, the arguments do not suit the tool {call.name}: {reason} It was not called."
        )
    return filled, filling.uses


def may_have_references(value: Any) -> bool:
    """A cheap check: False means there is nothing to resolve."""
    if isinstance(value, str):
        return value.startswith(_OPENINGS)
    if isinstance(value, Mapping):
        return any(may_have_references(member) for member in cast("Mapping[str, Any]", value).values())
    return isinstance(value, list | tuple) and any(may_have_references(item) for item in cast("Sequence[Any]", value))


class _Filling:
    def __init__(self, call: ToolCall, fetch: Fetch, allow: Sequence[tuple[str, str]], most: int) -> None:
        self.uses: list[ReferenceUse] = []
        self._call, self._fetch, self._allow, self._most, self._used = call, fetch, allow, most, 0

    def fill(self, value: Any, path: Path) -> Any:
        if isinstance(value, str):
            return self._string(value, path)
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            filled = {key: self.fill(member, (*path, key)) for key, member in members.items()}
            return members if all(filled[key] is member for key, member in members.items()) else filled
        if isinstance(value, list | tuple):
            given = cast("Sequence[Any]", value)
            items = [self.fill(item, (*path, index)) for index, item in enumerate(given)]
            return given if all(new is old for new, old in zip(items, given, strict=True)) else items
        return value

    def _string(self, text: str, path: Path) -> Any:
        if text.startswith(_LITERAL):
            return text[1:]
        reference = _REFERENCE.fullmatch(text) if text.startswith("{{output:") else None
        if not reference:
            return text
        place = reduce(append_token, path, "")
        try:
            source = self._fetch(reference[1])
            content, size = self._content(source, reference[2])
        except OverspillError as error:
            raise RefError(_NOT_FILLED.format(path=place, reason=error, tool=self._call.name)) from None
        self.uses.append(ReferenceUse(source.kept.id, size, place))
        self._used += size
        return content

    def _content(self, source: ReferenceSource, part: str | None) -> tuple[Any, int]:
        self._permit(source.kept)
        if part is None:
            return self._text(source.reader, 0, source.reader.size)
        if found := _LINES.fullmatch(part):
            first, last = int(found[1]), int(found[2])
            if first > last or source.view.line_start(last) == source.view.bytes:
                raise RefError(f"it asks for the lines {first} to {last}, and the output has {source.view.lines}.")
            return self._text(source.reader, *source.view.line_span(first, last))
        if not part.startswith("/"):
            raise RefError("a reference is {{output:HANDLE}}, {{output:HANDLE#/json/pointer}} or {{output:HANDLE#L10-20}}.")
        value, room = lookup(source.reader, part), Bound(self._most - self._used)
        text = value if isinstance(value, str) else write_within(value, room)
        if text is None or not room.holds(text):
            raise self._too_large()
        if "\ufffd" in text:  # it may represent an invalid byte
            _decode_text(source.reader.read(0, source.reader.size))
        return _plain(value), len(text.encode("utf-8", "surrogatepass"))

    def _permit(self, kept: Kept) -> None:
        call = self._call
        if not may_pass((kept.server, kept.tool), (call.server, call.name), self._allow):
            source, target = _qualified_name(kept.server, kept.tool), _qualified_name(call.server, call.name)
            raise RefError(f"outputs of {source} may not be given to {target}; the setting refs.allow can permit it.")
        if kept.media == "binary":
            raise RefError(_NOT_TEXT)

    def _text(self, reader: Reader, start: int, end: int) -> tuple[str, int]:
        if end - start > self._most - self._used:
            raise self._too_large()
        return _decode_text(reader.read(start, end)), end - start

    def _too_large(self) -> RefError:
        return RefError(f"the references of one call may have {self._most} bytes together, and with it there are more.")


def _decode_text(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise RefError(_NOT_TEXT) from None


def _plain(value: Value) -> Value:
    """The value with every level opened and numbers as plain Python numbers."""
    value = open_raw(value)
    if is_object(value):
        return {key: _plain(member) for key, member in value.items()}
    if is_array(value):
        return [_plain(item) for item in value]
    if isinstance(value, Number):
        if not math.isfinite(value):
            number = value.spelling if len(value.spelling) < 50 else "there"
            raise RefError(f"the number {number} is too large to be passed on.")
        return float(value)
    return value


def may_pass(source: tuple[str, str], target: tuple[str, str], allow: Sequence[tuple[str, str]]) -> bool:
    """Whether content of one tool may pass to another, each with its server: within one server, or as `allow` permits."""
    return source[0] == target[0] or any(matches(from_, *source) and matches(to, *target) for from_, to in allow)


def matches(pattern: str, server: str, tool: str) -> bool:
    """Whether a pattern, a server's name or `server/tool`, matches a tool of this server."""
    names = {f"{server}/{name}" for name in (tool, own_name(tool, server))} if "/" in pattern else {server}
    plain = pattern.replace("[", "[[]").replace("?", "[?]")  # only * is special
    return any(fnmatchcase(name, plain) for name in names)


def _qualified_name(server: str, tool: str) -> str:
    return f"{server}/{own_name(tool, server)}" if server else tool
