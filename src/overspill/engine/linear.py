"""Patterns over bytes in linear time: the only place that knows the matcher."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import re2  # pyright: ignore[reportMissingTypeStubs]

from overspill.engine.outline import Text


class Match(Protocol):
    def span(self) -> tuple[int, int]: ...
    def end(self) -> int: ...
    def start(self) -> int: ...
    def group(self, number: int = 0) -> bytes | None: ...


class Pattern(Protocol):
    def finditer(self, text: Text, pos: int, endpos: int, /) -> Iterator[Match]: ...


def pattern(spelling: bytes) -> Pattern:
    """Bytes are matched as they are, so a text need not be valid UTF-8."""
    matcher: Any = re2
    options = matcher.Options()
    options.log_errors = False
    options.encoding = matcher.Options.Encoding.LATIN1
    return matcher.compile(spelling, options)
