"""Which stores a process has opened, so that the same place gives the same store, and its sessions share a quota."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

_MAX_IDLE_STORES = 64
S = TypeVar("S")


class KnownStores(Generic[S]):
    """Known by digests, because a URL may have credentials. A store that is in use stays known, and so do the last ones made."""

    def __init__(self) -> None:
        self._stores: WeakValueDictionary[str, S] = WeakValueDictionary()
        self._last: deque[S] = deque(maxlen=_MAX_IDLE_STORES)
        self._mutex = Lock()

    def get(self, place: object, make: Callable[[], S]) -> S:
        """`make` makes it, and `place` says where it is, by how it is shown."""
        key = hashlib.sha256(repr(place).encode()).hexdigest()
        with self._mutex:
            store = self._stores.get(key)
            if store is None:
                store = self._stores[key] = make()
                self._last.append(store)
            return store
