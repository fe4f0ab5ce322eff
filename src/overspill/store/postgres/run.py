"""What one process is in the database: a lease, renewed as long as the process lives."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

from overspill.errors import StoreError
from overspill.store.postgres.database import Database
from overspill.store.postgres.schema import SCHEMA

LEASE_SECONDS = 30.0
"""After so long without a sign of life, others may take the sessions of a process."""
REMOVE_AFTER_SECONDS = 600.0
"""After so long without a sign of life, what a process did not mean to keep is removed."""
READABLE_AFTER_REMOVAL_SECONDS = 300.0
"""How long readers that are open can still read a removed output."""
_RENEWALS = 3  # in the time of a lease

START = (
    f"INSERT INTO {SCHEMA}.runs (run, until) VALUES (%(run)s, now() + make_interval(secs => %(lease)s)) ON CONFLICT DO NOTHING"
)
RENEW = f"UPDATE {SCHEMA}.runs SET until = now() + make_interval(secs => %(lease)s) WHERE run = %(run)s RETURNING run"
END = f"DELETE FROM {SCHEMA}.runs WHERE run = %(run)s"
SWEEP = f"""
WITH dead AS (
    DELETE FROM {SCHEMA}.runs WHERE until < now() - make_interval(secs => %(remove_after)s)
        AND pg_postmaster_start_time() < now() - make_interval(secs => %(remove_after)s) RETURNING run
), removed AS (
    DELETE FROM {SCHEMA}.sessions WHERE retention <> 'keep' AND run IN (SELECT run FROM dead)
)
DELETE FROM {SCHEMA}.outputs WHERE removed < now() - make_interval(secs => %(readable)s)
"""


class Run:
    """Its lease is not a lock: a process that was suspended finds out at its next write that it has lost a session."""

    def __init__(self, database: Database, lease_seconds: float, remove_after_seconds: float) -> None:
        self.id = str(uuid.uuid4())
        self.lease_seconds = lease_seconds
        self.pid = os.getpid()
        self.is_over = False
        self._database = database
        self._remove_after_seconds = remove_after_seconds
        self._stop = Event()
        database.rows("begin to use the store", START, {"run": self.id, "lease": lease_seconds})
        self._sweep()
        Thread(target=self._renew_until, args=(self._stop,), name="overspill-lease", daemon=True).start()

    @property
    def is_usable(self) -> bool:
        """False after it has ended, in a forked child, and if it was taken for dead."""
        return not self.is_over and self.pid == os.getpid()

    def end(self, finish: Callable[[], None]) -> None:
        """In a forked child this does nothing: the run is its parent's."""
        if not self.is_usable:
            return
        self.is_over = True
        self._stop.set()
        finish()
        self._database.rows("end the use of the store", END, {"run": self.id})

    def _renew_until(self, stop: Event) -> None:
        while not stop.wait(self.lease_seconds / _RENEWALS):
            # A server that is away is tried again next time; the sessions that use it report the failure.
            with suppress(StoreError):
                renewed = self._database.rows("renew a lease", RENEW, {"run": self.id, "lease": self.lease_seconds})
                if not renewed:
                    self.is_over = True
                    return
                self._sweep()

    def _sweep(self) -> None:
        times = {"remove_after": self._remove_after_seconds, "readable": READABLE_AFTER_REMOVAL_SECONDS}
        self._database.rows("remove what dead processes left", SWEEP, times)
