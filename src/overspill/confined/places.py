"""Places for processes, shared fairly between those who want several."""

from __future__ import annotations

import time
from threading import Condition


class FairPlaces:
    """Of those who wait, whoever was served longest ago is next. An owner has at most `most_each` places at the same time: with
    fewer than there are, whatever it starts leaves one to the others."""

    def __init__(self, count: int, most_each: int) -> None:
        self._free = count
        self._most_each = most_each
        self._changed = Condition()
        self._taken: dict[object, int] = {}
        self.waiting: dict[object, int] = {}
        self._served: list[object] = []
        """Owners that have or want a place and were served before, the one served longest ago first."""

    def take(self, owner: object, deadline: float) -> bool:
        """Blocks until it is this owner's turn. False if that is not before the deadline."""
        with self._changed:
            self.waiting[owner] = self.waiting.get(owner, 0) + 1
            try:
                if not self._changed.wait_for(lambda: self._is_next(owner), max(0.0, deadline - time.monotonic())):
                    return False
                self._free -= 1
                self._taken[owner] = self._taken.get(owner, 0) + 1
                self._served = [each for each in self._served if each != owner] + [owner]
                return True
            finally:
                self._count_down(self.waiting, owner)

    def give_back(self, owner: object) -> None:
        with self._changed:
            self._free += 1
            self._count_down(self._taken, owner)

    def _is_next(self, owner: object) -> bool:
        ready = [each for each in self.waiting if self._may_take(each)]
        return owner in ready and owner == min(ready, key=lambda each: self._served.index(each) if each in self._served else -1)

    def _may_take(self, owner: object) -> bool:
        return self._free > 0 and self._taken.get(owner, 0) < self._most_each

    def _count_down(self, counts: dict[object, int], owner: object) -> None:
        counts[owner] -= 1
        if not counts[owner]:
            del counts[owner]
        if owner not in self._taken and owner not in self.waiting:
            self._served = [each for each in self._served if each != owner]
        self._changed.notify_all()
