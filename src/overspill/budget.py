"""What is left of a context window. Reserving is atomic, so that parallel results cannot overflow it."""

from __future__ import annotations

from threading import Lock

from overspill.errors import SettingsError


class ContextBudget:
    """Room = window - reserve_output - buffer - used - reserved.

    Call `settle` after each request with what it really used. Until then, every reply of the gate counts as reserved.
    """

    def __init__(self, window: int, used: int = 0, reserve_output: int = 0, buffer: int = 0) -> None:
        _require_count("window", window, 1)
        for name, value in (("used", used), ("reserve_output", reserve_output), ("buffer", buffer)):
            _require_count(name, value)
        self.window = window
        self.reserve_output = reserve_output
        self.buffer = buffer
        self._used = used
        self._reservations: list[int] = []
        self._reserved = 0
        self._settled = 0  # how many reservations were cleared so far: marks count all of them from the first
        self._is_told = False  # whether a host has reported what requests really used
        self._lock = Lock()
        self.settlements: list[tuple[int, int]] = []
        """(our estimate, the host's count) of each request that is not on record yet."""

    @property
    def used(self) -> int:
        return self._used

    @property
    def reserved(self) -> int:
        return self._reserved

    @property
    def capacity(self) -> int:
        """The room a single result had at the start of this turn, before anything was reserved."""
        return max(0, self.window - self.reserve_output - self.buffer - self._used)

    @property
    def room(self) -> int:
        return max(0, self.capacity - self.reserved)

    def preview(self, tokens: int) -> bool:
        """Whether that many tokens would fit now. Reserves nothing."""
        _require_count("tokens", tokens)
        return tokens <= self.room

    def reserve(self, tokens: int) -> bool:
        with self._lock:
            if not self.preview(tokens):
                return False
            self._add(tokens)
            return True

    def charge(self, tokens: int) -> None:
        """Reserve tokens that do not fit, for a reply that must be sent anyway."""
        _require_count("tokens", tokens)
        with self._lock:
            self._add(tokens)

    def _add(self, tokens: int) -> None:
        self._reservations.append(tokens)
        self._reserved += tokens

    def mark(self) -> int:
        """Take a mark when you put a request together, and pass it to `settle`: later reservations are not part of it."""
        return self._settled + len(self._reservations)

    def settle(self, used: int, mark: int | None = None) -> None:
        """Set what the request really used. Clears the reservations that were part of it: those before `mark`, or all."""
        _require_count("used", used)
        _require_count("mark", 0 if mark is None else mark)
        with self._lock:
            self._is_told = True
            expected = self._replace(used, self.mark() if mark is None else mark)
            self.settlements.append((expected, used))

    def recount(self, used: int, mark: int) -> None:
        """Like `settle`, with a count of the conversation, for models that never report usage. Ignored after the first report."""
        _require_count("used", used)
        with self._lock:
            if not self._is_told:
                self._replace(used, mark)

    def _replace(self, used: int, mark: int) -> int:
        """Set the usage and clear reservations before `mark`. Returns the usage that was expected."""
        cleared = self._reservations[: max(0, mark - self._settled)]
        expected, self._used = self._used + sum(cleared), used
        self._settled += len(cleared)
        self._reserved -= sum(cleared)
        del self._reservations[: len(cleared)]
        return expected


def _require_count(name: str, value: object, minimum: int = 0) -> None:
    if not isinstance(value, int) or value < minimum:
        raise SettingsError(f"`{name}` must be a whole number of at least {minimum}, not {value!r}.")
