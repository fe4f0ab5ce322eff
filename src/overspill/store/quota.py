"""How many bytes a run may still write, counted per output so that removing one gives exactly its bytes back."""

from __future__ import annotations

from threading import Lock

from overspill.errors import StoreFull

GIB = 1 << 30


class Quota:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held: dict[tuple[str, str], int] = {}
        self._left = limit
        self._mutex = Lock()

    @property
    def left(self) -> int:
        return self._left

    def take(self, session: str, id: str, wanted: int) -> int:
        """As much of it as there is."""
        with self._mutex:
            granted = min(wanted, self._left)
            self._left -= granted
            self._held[session, id] = self._held.get((session, id), 0) + granted
            return granted

    def give_back(self, session: str, id: str, unused: int) -> None:
        with self._mutex:
            self._held[session, id] -= unused
            self._left += unused

    def release(self, session: str, id: str | None = None) -> None:
        """What one output holds, or a whole session's."""
        with self._mutex:
            for key in [key for key in self._held if key == (session, id) or (id is None and key[0] == session)]:
                self._left += self._held.pop(key)

    def exhausted_error(self, refused: int) -> StoreFull:
        return StoreFull(
            f"The quota of {self.limit:,} bytes for this run is used up: {refused:,} bytes could not be stored. "
            "What was stored before is still there; close sessions or delete outputs to make room."
        )
