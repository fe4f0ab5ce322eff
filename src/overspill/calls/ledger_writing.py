"""When a session's events are written: those about stored outputs and jobs before they are reported, others together.

A store on a server may take long to answer. A thread writes its journal, so that the event loop keeps running.
"""

from __future__ import annotations

import anyio
import anyio.to_thread

from overspill.calls.scheduler import JobScheduler
from overspill.record.ledger import Ledger

_WRITE_AFTER = 0.2  # seconds
_RETRY_AFTER = 1.0  # seconds


class LedgerWriting:
    def __init__(self, ledger: Ledger, jobs: JobScheduler) -> None:
        self._ledger = ledger
        self._jobs = jobs
        self._is_due = False
        self._turn = anyio.Lock()  # only one thread writes at a time, even if many tasks wait for that
        ledger.schedule_flush = self._write_soon

    async def settle(self) -> None:
        """Wait until what was recorded is written, or could not be. Do this before you report a stored output or a job."""
        wanted = self._ledger.recorded
        if self._ledger.settled < wanted and self._ledger.is_off_loop:
            async with self._turn:
                if self._ledger.settled < wanted:
                    await anyio.to_thread.run_sync(self._ledger.flush, abandon_on_cancel=True)

    def _write_soon(self) -> None:
        """Write the events of calls a moment later, together: writing each alone would cost more than the rest of its call."""
        if self._jobs.accepting or self._ledger.is_off_loop:
            self._write_in(_WRITE_AFTER)
        else:
            self._ledger.flush()

    def _write_in(self, seconds: float) -> None:
        if not self._is_due:
            self._is_due = True
            self._jobs.clock.set(self._ledger, seconds, self._write)

    def _write(self) -> float | None:
        if self._ledger.is_off_loop:
            self._jobs.start_work(self._write_in_thread)
            return None
        self._is_due = False
        self._ledger.flush()
        return _RETRY_AFTER if self._ledger.failure else None

    async def _write_in_thread(self) -> None:
        self._is_due = False
        async with self._turn:
            await anyio.to_thread.run_sync(self._ledger.flush, abandon_on_cancel=True)
        if self._ledger.failure:
            self._write_in(_RETRY_AFTER)
