"""What a session has extracted: whole results and single chunks, so that a repeated question continues where it stopped."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock, RLock
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
    """The values used last, as many as weigh at most `max_weight` together. Several threads may use it."""

    def __init__(self, max_weight: int, weigh: Callable[[V], int]) -> None:
        self._max_weight = max_weight
        self._weigh = weigh
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._weight = 0
        self._making: dict[K, Lock] = {}
        self._lock = RLock()

    def get(self, key: K) -> V | None:
        """Weighs it again, as some values grow while they are used."""
        with self._lock:
            if key not in self._values:
                return None
            self[key] = value = self._values[key][0]
            return value

    def __setitem__(self, key: K, value: V) -> None:
        with self._lock:
            _, before = self._values.pop(key, (None, 0))
            self._values[key] = value, (weight := self._weigh(value))
            self._weight += weight - before
            while self._weight > self._max_weight:
                self._weight -= self._values.popitem(last=False)[1][1]

    @contextmanager
    def making(self, key: K) -> Generator[None]:
        """Makes others who want to make the same value wait. Look for it inside."""
        with self._lock:
            making = self._making.setdefault(key, Lock())
        try:
            with making:
                yield
        finally:
            with self._lock:
                self._making.pop(key, None)


class Cache:
    """Lives as long as its session. Failures and partial results are never cached."""

    def __init__(self) -> None:
        self.results: Recent[CacheKey, Extraction] = Recent(
            MAX_RESULT_CHARS, lambda result: len(result.text) + sum(len(excerpt.text) for excerpt in result.excerpts)
        )
        self.chunks: Recent[tuple[CacheKey, Span], ModelReport] = Recent(
            MAX_RESULT_CHARS, lambda report: len(report.answer) + sum(map(len, report.quotes))
        )
