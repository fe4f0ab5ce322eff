"""What is left of a context window. Looking has no side effect; taking is atomic: parallel results cannot overflow it."""

from __future__ import annotations

from threading import Lock

from overspill.errors import SettingsError


class ContextBudget:
    """Room = window - reserve_output - buffer - used - reserved.

    The host tells what a request really used with `settle`; until then every answer given through the gate stands as reserved.
    """

    def __init__(self, window: int, used: int = 0, reserve_output: int = 0, buffer: int = 0) -> None:
        for name, value, least in (
            ("window", window, 1), ("used", used, 0), ("reserve_output", reserve_output, 0), ("buffer", buffer, 0)
        ):  # fmt: skip
            if value < least:
                raise SettingsError(f"{name} is {value}; allowed: a whole number from {least} up.")
        self.window = window
        self.reserve_output = reserve_output
        self.buffer = buffer
        self._used = used
        self._reservations: list[int] = []
        self._settled = 0  # how many reservations were ever cleared: marks count from the first one
        self._lock = Lock()
        self.settlements: list[tuple[int, int]] = []
        """(our estimate, the host's count) of each request since somebody last took note of them."""

    @property
    def used(self) -> int:
        return self._used

    @property
    def reserved(self) -> int:
        return sum(self._reservations)

    @property
    def capacity(self) -> int:
        """Room if nothing were reserved: what a single result could have had at the start of this turn."""
        return max(0, self.window - self.reserve_output - self.buffer - self._used)

    @property
    def room(self) -> int:
        return max(0, self.capacity - self.reserved)

    def preview(self, tokens: int) -> bool:
        """Whether that much would fit now."""
        return tokens <= self.room

    def reserve(self, tokens: int) -> bool:
        with self._lock:
            if not self.preview(tokens):
                return False
            self._reservations.append(tokens)
            return True

    def charge(self, tokens: int) -> None:
        """Reserve what has to be said although it does not fit."""
        with self._lock:
            self._reservations.append(tokens)

    def mark(self) -> int:
        """Take one when a request is put together: what was reserved so far goes with it, what comes later does not."""
        return self._settled + len(self._reservations)

    def settle(self, used: int, mark: int | None = None) -> None:
        """The host's own count after a request. Clears the reservations that went with it: those before `mark`, or all."""
        if used < 0:
            raise SettingsError(f"used is {used}; allowed: a whole number from 0 up.")
        with self._lock:
            included = self.mark() if mark is None else mark
            cleared = self._reservations[: max(0, included - self._settled)]
            self.settlements.append((self._used + sum(cleared), used))
            self._used = used
            self._settled += len(cleared)
            del self._reservations[: len(cleared)]
