"""What one process is in a bucket: an object that it writes again and again as long as it lives.

Whether another process lives is read from the dates of both objects, which the service sets: the clocks of the machines do not
matter.
"""

from __future__ import annotations

import math
import time
from threading import Lock

from overspill.store.objects.bucket import Bucket
from overspill.store.shared.lease import Lease

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the former also counts while the machine is suspended


def _elapsed() -> float:
    return time.clock_gettime(_CLOCK)


class Run(Lease):
    def __init__(self, bucket: Bucket, lease_seconds: float) -> None:
        super().__init__(lease_seconds)
        self.lapses = 0
        """How often the lease ran out before it was renewed: others may have taken sessions meanwhile."""
        self._bucket = bucket
        self._key = f"runs/{self.id}"
        self._mutex = Lock()
        self._date = 0.0
        self._renewed = math.inf
        self._written = 0.0
        self._sign()
        self.start_renewing()

    def now(self) -> float:
        """The time of the service, or up to a second later: its dates have no fractions."""
        return self._date + 1 + _elapsed() - self._written

    def is_alive(self, modified: float | None) -> bool:
        """Whether a process whose object has this date may still live. Both dates may be off by a second."""
        return modified is not None and self.now() - modified <= self.seconds + 2

    def check_lease(self) -> int:
        """Note whether the lease has run out, and return how often that has happened."""
        with self._mutex:
            if _elapsed() - self._renewed > self.seconds:
                self._sign()
            return self.lapses

    def wait_for_renewal(self) -> None:
        """After the lease has ended, one that is under way would write the object again when it has been removed."""
        with self._mutex:
            pass

    def _sign(self) -> None:
        """Called with the mutex held. The lease may run out while the service is slow to take the sign of life."""
        started = _elapsed()
        self._bucket.put(self._key)
        written = _elapsed()
        self.lapses += written - self._renewed > self.seconds
        found = self._bucket.find(self._key)
        self._date, self._written = (found.modified if found else time.time()), written
        self._renewed = started

    def renew(self) -> bool:
        with self._mutex:
            if not self.is_usable:
                return False
            self._sign()
            return True
