"""A bounded piece of a stored output: its position, and how to get the rest."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from overspill.errors import BadRequest
from overspill.reading.positions import View
from overspill.store.protocols import Reader
from overspill.text.encoding import byte_offset, character_start, decode

Unit: TypeAlias = Literal["bytes", "lines", "chars"]

_NOT_WHOLE = "{name} must be a whole number, not {value!r}."
_TOO_SMALL = "{name} must be at least {least}, not {value}."
_MAX_CHARACTER_BYTES = 4


class Bound(Struct, frozen=True):
    """The size limit of one answer, in bytes of UTF-8 and optionally in characters."""

    bytes: int
    chars: int | None = None

    def holds(self, text: str) -> bool:
        if self.chars is not None and len(text) > self.chars:
            return False
        return len(text) * 4 <= self.bytes or _size(text) <= self.bytes

    @property
    def least_bytes(self) -> int:
        """A text with no more bytes is within both."""
        return self.bytes if self.chars is None else min(self.bytes, self.chars)

    def after(self, text: str) -> Bound:
        """What is left after adding the text."""
        return Bound(self.bytes - _size(text), None if self.chars is None else self.chars - len(text))


class Range(Struct, frozen=True):
    """start..end as in a request: lines count from 1 and include `end`; bytes and characters count from 0 and exclude it."""

    unit: Unit
    start: int
    end: int


class Passage(Struct, frozen=True):
    """Text from a stored output. Positions count like those of `Range`; an empty passage has no lines (both are 0)."""

    text: str
    start_byte: int
    end_byte: int
    first_line: int
    last_line: int
    start_char: int
    end_char: int
    total: int
    """Bytes of the whole output."""
    omitted: int = 0
    """Requested bytes that did not fit."""
    next: Range | None = None
    """The range to request next for what did not fit."""
    previous: Range | None = None
    """The range to request for what did not fit before the text."""
    matches: int | None = None
    """How often the anchor occurs, if there is one and counting was cheap."""


def make_passage(
    reader: Reader,
    view: View,
    start: int,
    end: int,
    *,
    omitted: int = 0,
    following: Range | None = None,
    previous: Range | None = None,
) -> Passage:
    """The bytes start..end, unchanged, with their positions."""
    text = decode(reader.read(start, end))
    first_char = view.char_at(start)
    return Passage(
        text=text,
        start_byte=start,
        end_byte=end,
        first_line=view.line_at(start) if text else 0,
        last_line=view.line_at(end - 1) if text else 0,
        start_char=first_char,
        end_char=view.char_at(end),
        total=view.bytes,
        omitted=omitted,
        next=following,
        previous=previous,
    )


def fit(reader: Reader, start: int, end: int, bound: Bound) -> int:
    """The end of the longest piece from `start` that fits, cut between characters.

    The piece has at least one character even if that is over the bound: an empty answer would never get any further.
    """
    data = reader.read(start, min(end, start + max(bound.bytes, 0) + _MAX_CHARACTER_BYTES))
    whole = start + len(data) == end
    cut = len(data) if whole else character_start(data, min(max(bound.bytes, 0), len(data)))
    text = decode(data[:cut])
    if bound.holds(text) and text:
        return start + cut
    return start + byte_offset(data, max(len(clip(text, bound)), 1))


def clip(text: str, bound: Bound) -> str:
    """The longest beginning of the text that fits."""
    room = max(bound.bytes, 0)
    encoded = text[: room if bound.chars is None else min(room, bound.chars)].encode("utf-8", "surrogatepass")
    return decode(encoded[: character_start(encoded, min(room, len(encoded)))])


def require_whole_number(name: str, value: object, least: int) -> int:
    """Checks a number from a model, which may send anything."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadRequest(_NOT_WHOLE.format(name=name, value=value))
    if value < least:
        raise BadRequest(_TOO_SMALL.format(name=name, least=least, value=value))
    return value


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
