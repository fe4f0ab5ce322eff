"""What one process is in a bucket: an object that it writes again and again as long as it lives.

Whether another process lives is read from the dates of both objects, which the service sets: the clocks of the machines do not
matter.
"""

from __future__ import annotations

import os
import time
import uuid
from contextlib import suppress
from threading import Event, Lock, Thread

from overspill.errors import StoreError
from overspill.store.objects.bucket import Bucket

LEASE_SECONDS = 30.0
"""After so long without a sign of life, others may take the sessions of a process."""
REMOVE_AFTER_SECONDS = 600.0
"""After so long without a sign of life, what a process did not mean to keep is removed."""
READABLE_AFTER_REMOVAL_SECONDS = 300.0
"""How long readers that are open can still read a removed output."""
_RENEWALS = 3  # in the time of a lease
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the former also counts while the machine is suspended


def _elapsed() -> float:
    return time.clock_gettime(_CLOCK)


class Run:
    def __init__(self, bucket: Bucket, lease_seconds: float) -> None:
        self.id = str(uuid.uuid4())
        self.pid = os.getpid()
        self.lapses = 0
        """How often the lease ran out before it was renewed: others may have taken sessions meanwhile."""
        self._bucket = bucket
        self._lease_seconds = lease_seconds
        self._key = f"runs/{self.id}"
        self._stop = Event()
        self._mutex = Lock()
        self._is_over = False
        self._date = 0.0
        self._renewed = 0.0
        self._written = 0.0
        self._renew()
        Thread(target=self._renew_until, args=(self._stop,), name="overspill-lease", daemon=True).start()

    @property
    def is_usable(self) -> bool:
        """False after it has ended, and in a forked child."""
        return not self._is_over and self.pid == os.getpid()

    def now(self) -> float:
        """The time of the service, or up to a second later: its dates have no fractions."""
        return self._date + 1 + _elapsed() - self._written

    def is_alive(self, modified: float | None) -> bool:
        """Whether a process whose object has this date may still live. Both dates may be off by a second."""
        return modified is not None and self.now() - modified <= self._lease_seconds + 2

    def check_lease(self) -> int:
        """Note whether the lease has run out, and return how often that has happened."""
        with self._mutex:
            if _elapsed() - self._renewed > self._lease_seconds:
                self.lapses += 1
                self._renew()
            return self.lapses

    def end(self) -> None:
        self._is_over = True
        self._stop.set()
        self._bucket.delete([self._key])

    def _renew(self) -> None:
        """Called with the mutex held."""
        started = _elapsed()
        self._bucket.put(self._key)
        written = _elapsed()
        found = self._bucket.find(self._key)
        self._date, self._written = (found.modified if found else time.time()), written
        self._renewed = started

    def _renew_until(self, stop: Event) -> None:
        while not stop.wait(self._lease_seconds / _RENEWALS):
            # A service that is away is tried again next time; the sessions that use it report the failure.
            with suppress(StoreError), self._mutex:
                if _elapsed() - self._renewed > self._lease_seconds:
                    self.lapses += 1
                self._renew()
