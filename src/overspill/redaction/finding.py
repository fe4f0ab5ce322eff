"""One secret that was found in a text."""

from __future__ import annotations

from msgspec import Struct


class Finding(Struct, frozen=True):
    """`value`: the decoded secret; empty if several secrets overlap. `rank`: of several secrets that begin at
    the same position, the one with the lowest rank names the mark: known values, then shapes, then named values."""

    start: int
    end: int
    kind: str
    value: bytes
    rank: int = 1
