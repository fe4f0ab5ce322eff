"""One bounded piece of a stored output: where it stands, and what to ask for to get the rest."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from overspill.errors import BadRequest
from overspill.reading.positions import View
from overspill.store.protocols import Reader
from overspill.text.encoding import byte_offset, character_start, decode

Unit: TypeAlias = Literal["bytes", "lines", "chars"]

_NOT_WHOLE = "{name} has to be a whole number, not {value!r}."
_TOO_SMALL = "{name} has to be at least {least}, not {value}."
_MAX_CHARACTER_BYTES = 4


class Bound(Struct, frozen=True):
    """How much one answer may hold: bytes of UTF-8, and characters where somebody limits those too."""

    bytes: int
    chars: int | None = None

    def holds(self, text: str) -> bool:
        if self.chars is not None and len(text) > self.chars:
            return False
        return len(text) * 4 <= self.bytes or _size(text) <= self.bytes

    def after(self, text: str) -> Bound:
        """What is left when the text has been taken in."""
        return Bound(self.bytes - _size(text), None if self.chars is None else self.chars - len(text))


class Range(Struct, frozen=True):
    """start..end as a request spells it: lines count from 1 and include `end`; bytes and characters count from 0 and do not."""

    unit: Unit
    start: int
    end: int


class Passage(Struct, frozen=True):
    """Text from a stored output. Spans count like `Range`; a passage without text stands on no line (both 0)."""

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
    """Bytes that were asked for and did not fit."""
    next: Range | None = None
    """What to ask for to get the rest of what did not fit."""
    previous: Range | None = None
    """What to ask for to get what did not fit before the text."""
    matches: int | None = None
    """How often the anchor occurs, where there was one and it was cheap to count."""


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
    """The bytes start..end as they are, with their positions."""
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
    """The end of the longest piece from `start` that the bound holds, cut between characters.

    It has at least one character, also where the bound is smaller than that: an answer that gives nothing leads nowhere.
    """
    data = reader.read(start, min(end, start + max(bound.bytes, 0) + _MAX_CHARACTER_BYTES))
    whole = start + len(data) == end
    cut = len(data) if whole else character_start(data, min(max(bound.bytes, 0), len(data)))
    text = decode(data[:cut])
    if bound.holds(text) and text:
        return start + cut
    return start + byte_offset(data, max(len(clip(text, bound)), 1))


def clip(text: str, bound: Bound) -> str:
    """As many characters from the beginning of the text as the bound holds."""
    room = max(bound.bytes, 0)
    encoded = text[: room if bound.chars is None else min(room, bound.chars)].encode("utf-8", "surrogatepass")
    return decode(encoded[: character_start(encoded, min(room, len(encoded)))])


def require_whole_number(name: str, value: object, least: int) -> int:
    """A number that came from a model, which may have sent anything."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadRequest(_NOT_WHOLE.format(name=name, value=value))
    if value < least:
        raise BadRequest(_TOO_SMALL.format(name=name, least=least, value=value))
    return value


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
