"""What a page is asked for: numbers, words and places from the address, each of them bounded."""

from __future__ import annotations

import re

from starlette.requests import Request

from overspill.errors import BadRequest
from overspill.view.windows import Span

MAX_WORDS_CHARS = 2_000
_MAX_NUMBER = 1 << 53
_RANGE = re.compile(r"([0-9]{1,16})(?:-([0-9]{1,16}))?")


def read_number(request: Request, name: str, default: int = 0) -> int:
    given = request.query_params.get(name, "")
    if not given:
        return default
    if not (given.isascii() and given.isdigit() and len(given) <= 16 and int(given) <= _MAX_NUMBER):
        raise BadRequest(f"{name} must be a whole number of at least 0.")
    return int(given)


def read_words(request: Request, name: str) -> str:
    given = request.query_params.get(name, "")
    if len(given) > MAX_WORDS_CHARS:
        raise BadRequest(f"{name} has {len(given):,} characters. The most is {MAX_WORDS_CHARS:,}.")
    return given.strip()


def read_range(request: Request, name: str) -> Span | None:
    """`10-20`, or `10` for one; None if it is not asked for."""
    given = request.query_params.get(name, "")
    if not given:
        return None
    found = _RANGE.fullmatch(given)
    if found is None:
        raise BadRequest(f"{name} must be a number or two with a hyphen between them, such as 10-20.")
    first = int(found[1])
    last = int(found[2]) if found[2] else first
    if last < first:
        raise BadRequest(f"{name}={given}: the first is after the last.")
    return first, last


class AnswerPage:
    """A part of a long list."""

    def __init__(self, total: int, number: int, size: int) -> None:
        self.total = total
        self.last = max(1, -(-total // size))
        self.number = min(max(number, 1), self.last)
        self.start = (self.number - 1) * size
        self.end = min(self.start + size, total)
