"""How many bytes may still be written, counted for each output so that removing one gives exactly its bytes back."""

from __future__ import annotations

from threading import Lock
from typing import Protocol

from overspill.errors import StoreFull

GIB = 1 << 30


class OutputQuota(Protocol):
    def take(self, session: str, id: str, wanted: int) -> int:
        """Reserve these bytes, or as many of them as there are. Returns how many."""
        ...

    def give_back(self, session: str, id: str, unused: int) -> None: ...
    def release(self, session: str, id: str | None = None) -> int:
        """Give back what one output holds, or a whole session. Returns how many bytes."""
        ...

    def exhausted_error(self, refused: int) -> StoreFull: ...


class Quota:
    """The quota of one run."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held: dict[str, dict[str, int]] = {}
        self._left = limit
        self._mutex = Lock()

    @property
    def left(self) -> int:
        return self._left

    def take(self, session: str, id: str, wanted: int) -> int:
        with self._mutex:
            granted = min(wanted, self._left)
            self._left -= granted
            outputs = self._held.setdefault(session, {})
            outputs[id] = outputs.get(id, 0) + granted
            return granted

    def give_back(self, session: str, id: str, unused: int) -> None:
        with self._mutex:
            outputs = self._held.get(session, {})
            if id in outputs:  # or it was released meanwhile, with all its bytes
                outputs[id] -= unused
                self._left += unused

    def release(self, session: str, id: str | None = None) -> int:
        with self._mutex:
            outputs = self._held.get(session, {})
            released = sum(outputs.values()) if id is None else outputs.pop(id, 0)
            if id is None:
                self._held.pop(session, None)
            self._left += released
            return released

    def outputs(self, session: str) -> set[str]:
        """The outputs of this session that hold something."""
        with self._mutex:
            return set(self._held.get(session, {}))

    def sessions(self) -> list[str]:
        with self._mutex:
            return list(self._held)

    def exhausted_error(self, refused: int) -> StoreFull:
        return StoreFull(
            f"The quota of {self.limit:,} bytes for this run is used up: {refused:,} bytes could not be stored. "
            "What was stored before is still there; close sessions or delete outputs to make room."
        )
