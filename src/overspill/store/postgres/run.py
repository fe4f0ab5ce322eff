"""What one process is in the database: a lease, renewed as long as the process lives."""

from __future__ import annotations

from overspill.store.postgres.database import Database
from overspill.store.postgres.schema import SCHEMA
from overspill.store.shared.lease import READABLE_AFTER_REMOVAL_SECONDS, Lease

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


class Run(Lease):
    def __init__(self, database: Database, lease_seconds: float, remove_after_seconds: float) -> None:
        super().__init__(lease_seconds)
        self._database = database
        self._remove_after_seconds = remove_after_seconds
        self._key = {"run": self.id, "lease": lease_seconds}
        database.rows("begin to use the store", START, self._key)
        self._sweep()
        self.start_renewing()

    def remove(self) -> None:
        self._database.rows("end the use of the store", END, self._key)

    def renew(self) -> bool:
        is_renewed = bool(self._database.rows("renew a lease", RENEW, self._key))
        if is_renewed:
            self._sweep()
        return is_renewed

    def _sweep(self) -> None:
        times = {"remove_after": self._remove_after_seconds, "readable": READABLE_AFTER_REMOVAL_SECONDS}
        self._database.rows("remove what dead processes left", SWEEP, times)
