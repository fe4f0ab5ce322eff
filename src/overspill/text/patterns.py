"""Patterns that take linear time on any input. Only this module imports RE2.

RE2 has no look-around and no backreferences; its \\s, \\w, \\d and \\b know ASCII only; positions are bytes. Patterns written in
the source may be ordinary regular expressions (`text/regex.py`), because a test attacks every one of them. Patterns built at run
time, from a question or by a model, belong here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from mmap import mmap
from typing import Any, Protocol, TypeAlias, cast

import re2 as untyped  # pyright: ignore[reportMissingTypeStubs]

_re2 = cast("Any", untyped)
_ANCHORED, _UNANCHORED = _re2._Anchor.ANCHOR_START, _re2._Anchor.UNANCHORED

Searched: TypeAlias = bytes | bytearray | memoryview | mmap


class PatternError(ValueError):
    """RE2 refused the pattern; the message is its reason."""


class Match(Protocol):
    @property
    def re(self) -> Pattern: ...
    def span(self, number: int = 0, /) -> tuple[int, int]: ...
    def start(self) -> int: ...
    def end(self) -> int: ...
    def group(self, number: int = 0) -> bytes | None: ...


class Pattern(Protocol):
    @property
    def groups(self) -> int: ...
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
    """Matches single bytes, valid text or not; with `utf8`, characters."""
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


def find_spans(pattern: Pattern, text: Searched, pos: int, endpos: int) -> Iterator[tuple[int, int]]:
    """Like `finditer`, in half the time: it calls the matcher directly and creates no match objects."""
    match: Callable[..., list[tuple[int, int]]] = cast("Any", pattern)._regexp.Match
    while pos <= endpos and (span := match(_UNANCHORED, text, pos, endpos)[0])[0] >= 0:
        yield span
        pos = span[1] if span[1] > pos else pos + 1


def find_groups(pattern: Pattern, text: Searched, pos: int, endpos: int, *, anchored: bool = False) -> list[tuple[int, int]]:
    """The spans of the first match and its groups; -1: a group took no part. Empty without a match. `anchored`: only at `pos`."""
    match: Callable[..., list[tuple[int, int]]] = cast("Any", pattern)._regexp.Match
    spans = match(_ANCHORED if anchored else _UNANCHORED, text, pos, endpos)
    return spans if spans[0][0] >= 0 else []


def escape(text: bytes) -> bytes:
    """A pattern that matches exactly these bytes."""
    return cast("bytes", _re2.escape(text))
