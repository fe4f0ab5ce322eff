"""A cache of recent values that take long to compute, within a limit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock, RLock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The most recently used values that together weigh at most `max_weight`. Several threads may use it."""

    def __init__(self, max_weight: int, weigh: Callable[[V], int]) -> None:
        self._max_weight = max_weight
        self._weigh = weigh
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._weight = 0
        self._making: dict[K, Lock] = {}
        self._lock = RLock()

    def get(self, key: K) -> V | None:
        """The value, if it is still cached. Weighs it again, because some values grow while they are used."""
        with self._lock:
            if key not in self._values:
                return None
            self[key] = value = self._values[key][0]
            return value

    def __setitem__(self, key: K, value: V) -> None:
        """A value that exceeds the whole limit is not kept, and does not evict others."""
        with self._lock:
            self._weight -= self._values.pop(key, (None, 0))[1]
            if (weight := self._weigh(value)) > self._max_weight:
                return
            self._values[key] = value, weight
            self._weight += weight
            while self._weight > self._max_weight:
                self._weight -= self._values.popitem(last=False)[1][1]

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
            self._weight = 0

    @contextmanager
    def making(self, key: K) -> Generator[None]:
        """While one thread makes a value, others that need the same value wait. Look it up again inside the block."""
        with self._lock:
            making = self._making.setdefault(key, Lock())
        try:
            with making:
                yield
        finally:
            with self._lock:
                self._making.pop(key, None)
