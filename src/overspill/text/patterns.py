"""Patterns that take linear time whatever they are and whatever text they meet: the only module that knows RE2.

RE2 has neither look-around nor backreferences, its \\s, \\w, \\d and \\b know ASCII only, and all places are bytes. Patterns that
are written in the source may be ordinary regular expressions: a test attacks every one of them. What is spelled while running,
from a question or by a model, belongs here.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import mmap
from typing import Any, Protocol, TypeAlias, cast

import re2 as untyped  # pyright: ignore[reportMissingTypeStubs]

_re2 = cast("Any", untyped)

Searched: TypeAlias = bytes | bytearray | memoryview | mmap


class PatternError(ValueError):
    """What RE2 refuses, with its reason."""


class Match(Protocol):
    def span(self) -> tuple[int, int]: ...
    def start(self) -> int: ...
    def end(self) -> int: ...
    def group(self, number: int = 0) -> bytes | None: ...


class Pattern(Protocol):
    def search(self, text: Searched, pos: int = 0, /) -> Match | None: ...
    def finditer(self, text: Searched, pos: int = 0, endpos: int | None = None, /) -> Iterator[Match]: ...


def compile_pattern(
    spelling: bytes,
    *,
    utf8: bool = False,
    literal: bool = False,
    ignore_case: bool = False,
    within_lines: bool = False,
    max_memory: int | None = None,
) -> Pattern:
    """Matches bytes as they are, so that no text need be valid, or the characters of UTF-8."""
    options = _re2.Options()
    options.log_errors = False
    options.literal = literal
    options.case_sensitive = not ignore_case
    options.never_nl = within_lines
    if not utf8:
        options.encoding = _re2.Options.Encoding.LATIN1
    if max_memory is not None:
        options.max_mem = max_memory
    try:
        return cast("Pattern", _re2.compile(spelling, options))
    except _re2.error as error:
        reason: object = error.args[0]
        raise PatternError(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)) from None


def escape(text: bytes) -> bytes:
    """A pattern for exactly these bytes."""
    return cast("bytes", _re2.escape(text))
