"""What a session has extracted: whole results and single chunks, so that a repeated question continues where it stopped."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from overspill.extraction.chunks import Span
from overspill.extraction.report import ModelReport
from overspill.types import Extraction

MAX_RESULT_CHARS = 16 << 20
"""Characters of results that a session holds; as many again for single chunks."""

K = TypeVar("K")
V = TypeVar("V")


class CacheKey(Struct, frozen=True):
    """Everything an answer depends on."""

    sha256: str
    query: str
    mode: str
    model: str
    prompts: str
    max_tokens: int


class Recent(Generic[K, V]):
    """The values used last, as many as weigh at most `max_weight` together. For one thread."""

    def __init__(self, max_weight: int, weigh: Callable[[V], int]) -> None:
        self._max_weight = max_weight
        self._weigh = weigh
        self._values: OrderedDict[K, V] = OrderedDict()
        self._weight = 0

    def get(self, key: K) -> V | None:
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        if key in self._values:
            self._weight -= self._weigh(self._values.pop(key))
        self._values[key] = value
        self._weight += self._weigh(value)
        while self._weight > self._max_weight:
            self._weight -= self._weigh(self._values.popitem(last=False)[1])


class Cache:
    """Lives as long as its session. Failures and partial results are never cached."""

    def __init__(self) -> None:
        self.results: Recent[CacheKey, Extraction] = Recent(MAX_RESULT_CHARS, _weigh_result)
        self.chunks: Recent[tuple[CacheKey, Span], ModelReport] = Recent(MAX_RESULT_CHARS, _weigh_report)


def _weigh_result(result: Extraction) -> int:
    return len(result.text) + sum(len(excerpt.text) for excerpt in result.excerpts)


def _weigh_report(report: ModelReport) -> int:
    return len(report.answer) + sum(map(len, report.quotes))
