"""What a session has extracted: whole results and single chunks, so that a repeated question continues where it stopped."""

from __future__ import annotations

from msgspec import Struct

from overspill.extraction.chunks import Span
from overspill.extraction.report import ModelReport
from overspill.store.recent import Recent
from overspill.types import Extraction

MAX_RESULT_CHARS = 16 << 20
"""Characters of results that a session holds. Results of single chunks have a separate limit of the same size."""


class CacheKey(Struct, frozen=True):
    """Everything an answer depends on."""

    sha256: str
    query: str
    mode: str
    model: str
    prompts: str
    max_tokens: int


class Cache:
    """Lives as long as its session. Failures and partial results are never cached."""

    def __init__(self) -> None:
        self.results: Recent[CacheKey, Extraction] = Recent(
            MAX_RESULT_CHARS, lambda result: len(result.text) + sum(len(excerpt.text) for excerpt in result.excerpts)
        )
        self.chunks: Recent[tuple[CacheKey, Span], ModelReport] = Recent(
            MAX_RESULT_CHARS, lambda report: len(report.answer) + sum(map(len, report.quotes))
        )
