"""What a check finds."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Level: TypeAlias = Literal["ok", "note", "wrong"]


class Finding(Struct, frozen=True):
    """`advice` says what you can do about it."""

    about: str
    level: Level
    text: str
    advice: str = ""
