"""How many bytes may still be written: in one run, and given what its family keeps.

Bytes are counted for each output, so removing one gives back exactly its bytes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import TypeAlias

from overspill.errors import StoreError, StoreFull
from overspill.store.keep import Measurement
from overspill.store.protocols import Expired, KeepLimits, Retention

GIB = 1 << 30


class Quota:
    """The quota of one run."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held: dict[str, dict[str, int]] = {}
        self.left = limit
        self._mutex = Lock()

    def take(self, session: str, id: str, wanted: int) -> int:
        """Reserve these bytes, or as many as are left. Returns how many."""
        with self._mutex:
            granted = min(wanted, self.left)
            self.left -= granted
            outputs = self._held.setdefault(session, {})
            outputs[id] = outputs.get(id, 0) + granted
            return granted

    def give_back(self, session: str, id: str, unused: int) -> None:
        with self._mutex:
            outputs = self._held.get(session, {})
            if id in outputs:  # if not, the output was released in the meantime, with all its bytes
                outputs[id] -= unused
                self.left += unused

    def release(self, session: str, id: str | None = None) -> int:
        """Give back what one output holds, or a whole session. Returns how many bytes."""
        with self._mutex:
            outputs = self._held.get(session, {})
            released = sum(outputs.values()) if id is None else outputs.pop(id, 0)
            if id is None:
                self._held.pop(session, None)
            self.left += released
            return released

    def outputs(self, session: str) -> set[str]:
        """The outputs of this session that hold bytes."""
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


HOUR = 3600.0
_REST_AFTER_SWEEP = 20  # the pause after a sweep, in multiples of how long it took: a thread sweeps at most 5 % of the time
_MARGIN = 20  # A sweep for a new output frees a twentieth of the limit, so that the next outputs need none.


class KeepGuard:
    """Enforces the limits for the live sessions of one process. `expire` applies them to the whole store, and blocks.

    Counts what other processes keep when the store is measured, so the limit may be exceeded by what they have stored since.
    """

    def __init__(self, expire: Callable[..., Expired], *, sweep_seconds: float = HOUR, rest_seconds: float = 0.0) -> None:
        """After an opening session has applied the limits, at least `rest_seconds` pass before another one does."""
        self._expire = expire
        self._sweep_seconds = sweep_seconds
        self._rest_seconds = rest_seconds
        self._applied: KeepLimits | None = None
        self._due = 0.0
        self._kept_bytes: Counter[str] = Counter()  # by family
        self._granted: Counter[str] = Counter()  # by family, since the start, less what was given back
        self._measured_at: Counter[str] = Counter()  # what was granted when everything was last measured
        self.overdue: KeepLimits | None = None
        """The limits that `finish` applies, unless that has happened by then."""
        self._no_sweep_before: dict[str, float] = {}
        self._live: dict[str, KeepLimits] = {}
        self._wake, self._stop = Event(), Event()
        self._sweeping = Lock()  # if many outputs are over the limit at the same time, one sweep is enough
        # Both are taken last, and nothing is called while they are held: a store that opens a session holds locks itself.
        self._counting = Lock()
        self._membership = Lock()

    def apply(self, limits: KeepLimits, family: str | None = None) -> None:
        """Remove what is over the limits, and recount. Bytes granted during this may count twice for now, but always count."""
        started = time.monotonic()
        with self._counting:
            before = self._granted.copy()
        left = self._expire(limits, family=family).families
        with self._counting:
            self._kept_bytes = Counter(left)
            self._kept_bytes.update(self._granted)
            self._kept_bytes.subtract(before)
            self._measured_at = before
        if family is None:
            self.overdue = None
            ended = time.monotonic()
            self._applied = limits
            self._due = ended + max(self._rest_seconds, (ended - started) * _REST_AFTER_SWEEP)

    def recall(self, measured: Measurement, limits: KeepLimits, *, due_seconds: float) -> None:
        """Start from another process's measurement. The limits are due in `due_seconds`, or now if it used laxer ones."""
        with self._counting:
            self._kept_bytes = Counter(measured.families)
        self._applied = limits if measured.limits.is_as_strict_as(limits) else measured.limits
        self._due = time.monotonic() + due_seconds

    def finish(self) -> dict[str, int]:
        """Call it when the process ends. Returns how many bytes it has added to each family since that was last measured."""
        if overdue := self.overdue:
            with suppress(StoreError, OSError), self._sweeping:
                if self.overdue is overdue:  # if not, a thread has applied them in the meantime
                    self.apply(overdue)
        with self._counting:
            changes = self._granted.copy()
            changes.subtract(self._measured_at)
        return {each: change for each, change in changes.items() if change}

    def is_due(self, limits: KeepLimits) -> bool:
        return self._applied != limits or time.monotonic() >= self._due

    def make_quota(self, run: Quota, session: str, family: str, retention: Retention, limits: KeepLimits | None) -> OutputQuota:
        """The quota of a session. If the session is kept, the limits are also enforced for it until it closes."""
        if limits is None or retention != "keep":
            return run
        # Do what is due in the background: opening a session must not wait until everything is measured.
        with self._membership:
            if not self._live:
                self._wake, self._stop = Event(), Event()
                args = self._wake, self._stop
                Thread(target=self._sweep_until, args=args, name="overspill-keep-limits", daemon=True).start()
            self._live[session] = limits
            if self.is_due(limits):
                self._wake.set()
        return KeepQuota(run, self, limits, family)

    def leave(self, session: str) -> None:
        with self._membership:
            if self._live.pop(session, None) and not self._live:
                self._stop.set()
                self._wake.set()

    def take(self, family: str, limits: KeepLimits, wanted: int) -> int:
        """Grant as many of these bytes as the limit allows, after removing what may go. Measures everything the first time."""
        if self._applied is not None and self._grant(family, limits, wanted) == wanted:
            return wanted
        with self._sweeping:
            if self._applied is None:
                self.apply(limits)
            if self._grant(family, limits, wanted) == wanted:
                return wanted
            if (started := time.monotonic()) >= self._no_sweep_before.get(family, 0.0):
                # Make some more room than needed, without taking it from another family.
                self.apply(KeepLimits(limits.days, max(0, limits.bytes - wanted - limits.bytes // _MARGIN)), family)
                if self._grant(family, limits, wanted) == wanted:
                    return wanted
                now = time.monotonic()
                self._no_sweep_before[family] = now + (now - started) * _REST_AFTER_SWEEP
            return self._grant(family, limits, wanted, is_part_enough=True)

    def give_back(self, family: str, unused: int) -> None:
        with self._counting:
            self._kept_bytes[family] -= unused
            self._granted[family] -= unused

    def is_full(self, family: str, limits: KeepLimits) -> bool:
        return self._kept_bytes[family] >= limits.bytes

    def _grant(self, family: str, limits: KeepLimits, wanted: int, *, is_part_enough: bool = False) -> int:
        with self._counting:
            granted = max(0, min(wanted, limits.bytes - self._kept_bytes[family]))
            if granted < wanted and not is_part_enough:
                return 0
            self._kept_bytes[family] += granted
            self._granted[family] += granted
            return granted

    def _sweep_until(self, wake: Event, stop: Event) -> None:
        while True:
            is_called = wake.wait(self._sweep_seconds)
            wake.clear()
            if stop.is_set():
                return
            with self._membership:
                all_limits = set(self._live.values())
            for limits in all_limits:
                # A store that fails now is tried again next time; sessions that use it report the failure.
                with suppress(StoreError, OSError), self._sweeping:
                    if not is_called or self.is_due(limits):
                        self.apply(limits)


class KeepQuota:
    """The quota of a kept session: what the run may still write, and what its family may keep in all."""

    def __init__(self, run: Quota, guard: KeepGuard, limits: KeepLimits, family: str) -> None:
        self._run = run
        self._guard = guard
        self._limits = limits
        self._family = family

    def take(self, session: str, id: str, wanted: int) -> int:
        of_run = self._run.take(session, id, wanted)
        granted = 0
        try:
            granted = self._guard.take(self._family, self._limits, of_run)
        finally:
            self._run.give_back(session, id, of_run - granted)
        return granted

    def give_back(self, session: str, id: str, unused: int) -> None:
        self._run.give_back(session, id, unused)
        self._guard.give_back(self._family, unused)

    def release(self, session: str, id: str | None = None) -> int:
        released = self._run.release(session, id)
        self._guard.give_back(self._family, released)
        return released

    def exhausted_error(self, refused: int) -> StoreFull:
        if not self._guard.is_full(self._family, self._limits):
            return self._run.exhausted_error(refused)
        return StoreFull(
            f"The {self._limits.bytes:,} bytes that may be kept (keepBytes) are used up: {refused:,} bytes could not be stored. "
            "Only outputs that were not read for 24 hours make room. Raise keepBytes, or remove outputs with "
            "`overspill artifacts clean`."
        )


OutputQuota: TypeAlias = Quota | KeepQuota
