"""An output has one id and three spellings of it: the handle `session-<uuid>/<uuid>`, the artifact id `art_<unix-ms>_<hex>` and
the short name `out_3f7k9q`.

The id is a version 7 UUID, 48 bits of time and 74 random bits. The artifact id spells the same bits differently. The name spells
only the last of the random bits, so it means something only together with the outputs of one owner.
"""

from __future__ import annotations

import secrets
import time
from uuid import UUID

from overspill.errors import MalformedHandle
from overspill.text.regex import regex

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_HANDLE_PATTERN = regex(rf"session-({_UUID})/({_UUID})")
_ARTIFACT_PATTERN = regex(r"art_([1-9][0-9]{12,14})_([0-9a-f]{19})")
_UUID_PATTERN = regex(_UUID)
_NAME_START = "out_"
_NAME_PATTERN = regex(r"out_([0-9a-hjkmnp-tv-z]{6,12})")
_NAME_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: easily misread, or part of a word
ENDING_CHARS = 7
"""Hexadecimal digits at the end of an id that even the shortest name includes."""
MIN_NAME_CHARS = 6
MAX_NAME_CHARS = 12
"""Each character has five bits, and all bits are random."""
_AROUND = " \t\r\n\"'`\u2018\u2019\u201c\u201d"  # blanks and quotes, straight and typographic
_LOW_BITS = 62  # random bits after the variant
_HIGH_BITS = 12  # random bits between version and variant


def new() -> str:
    """A version 7 UUID. All its random bits come from the system's generator, which makes it impossible to guess."""
    return _compose(time.time_ns() // 1_000_000, secrets.randbits(_HIGH_BITS + _LOW_BITS))


def handle(session: str, file: str) -> str:
    return f"session-{session}/{file}"


def artifact_id(file: str) -> str:
    value = UUID(file).int
    high = (value >> 64) & ((1 << _HIGH_BITS) - 1)
    low = value & ((1 << _LOW_BITS) - 1)
    return f"art_{value >> 80}_{(high << _LOW_BITS) | low:019x}"


def name(file: str, chars: int = MIN_NAME_CHARS) -> str:
    """A short name that is also a valid SQL name. More characters distinguish outputs whose names would be equal."""
    bits = int(file[-16:].replace("-", ""), 16)
    return _NAME_START + "".join(_NAME_ALPHABET[bits >> 5 * at & 31] for at in range(min(chars, MAX_NAME_CHARS)))


def ending(name: str) -> str:
    """The ending that all ids with this short name share."""
    low = sum(_NAME_ALPHABET.index(char) << 5 * at for at, char in enumerate(name[len(_NAME_START) :][:MIN_NAME_CHARS]))
    return f"{low:x}".zfill(ENDING_CHARS)[-ENDING_CHARS:]


def count_name_chars(name: str) -> int:
    return len(name) - len(_NAME_START)


def parse_name(spelling: object) -> str | None:
    """The short name that this is, without what models put around it; None if it is something else."""
    if not isinstance(spelling, str):
        return None
    found = _NAME_PATTERN.fullmatch(spelling.strip(_AROUND).lower())
    return found and found[0]


def parse(spelling: str) -> tuple[str | None, str]:
    """Return (session, file) for a handle, (None, file) for an artifact id or a bare UUID; otherwise raise MalformedHandle.

    Accepts what models add when they copy ids: blanks, quotes, line feeds, capitals.
    """
    if not isinstance(spelling, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MalformedHandle(repr(spelling))
    given, spelling = spelling, spelling.strip(_AROUND).lower()
    if found := _HANDLE_PATTERN.fullmatch(spelling):
        return found[1], found[2]
    if found := _ARTIFACT_PATTERN.fullmatch(spelling):
        milliseconds, random = int(found[1]), int(found[2], 16)
        if milliseconds < 1 << 48 and random < 1 << (_HIGH_BITS + _LOW_BITS):
            return None, _compose(milliseconds, random)
    if _UUID_PATTERN.fullmatch(spelling):
        return None, spelling
    raise MalformedHandle(given)


def is_uuid(text: str) -> bool:
    return _UUID_PATTERN.fullmatch(text) is not None


def created_ms(file: str) -> int:
    return UUID(file).int >> 80


def first_of(milliseconds: int) -> str:
    """The lowest id of this moment, for listing everything newer."""
    return _compose(milliseconds, 0)


def _compose(milliseconds: int, random: int) -> str:
    high, low = random >> _LOW_BITS, random & ((1 << _LOW_BITS) - 1)
    return str(UUID(int=milliseconds << 80 | 7 << 76 | high << 64 | 2 << 62 | low))
