"""What a session has extracted already: whole results, and single chunks, so that a question asked again goes on."""

from __future__ import annotations

from msgspec import Struct

from overspill.extraction.chunks import Span
from overspill.extraction.report import Report
from overspill.types import Extraction


class Key(Struct, frozen=True):
    """Everything an answer depends on."""

    sha256: str
    query: str
    mode: str
    model: str
    prompts: str
    max_tokens: int


class Cache:
    """Lives as long as its session. Failures and results of a part are never put in."""

    def __init__(self) -> None:
        self.results: dict[Key, Extraction] = {}
        self.chunks: dict[tuple[Key, Span], Report] = {}
