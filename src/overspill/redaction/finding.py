"""A secret in a text."""

from __future__ import annotations

from msgspec import Struct


class Finding(Struct, frozen=True):
    """`value`: the secret itself, even if the text encodes it; empty if several secrets overlap. `rank`: of several that begin at
    the same place, the lowest names the mark: known values, then shapes, then named values."""

    start: int
    end: int
    kind: str
    value: bytes
    rank: int = 1
