"""A process's sign of life in a store that many share, given again and again as long as the process runs."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from threading import Event, Thread

from overspill.errors import StoreError

LEASE_SECONDS = 30.0
"""After so long without a sign of life, others may take the sessions of a process."""
REMOVE_AFTER_SECONDS = 600.0
"""After so long without a sign of life, what a process did not mean to keep is removed."""
READABLE_AFTER_REMOVAL_SECONDS = 300.0
"""How long readers that are open can still read a removed output."""
_RENEWALS = 3  # in the time of a lease


class Lease:
    """What a process is in the store. It is not a lock: a process that was suspended finds out at its next write that it has lost
    a session."""

    def __init__(self, seconds: float) -> None:
        self.id = str(uuid.uuid4())
        self.seconds = seconds
        self._pid = os.getpid()
        self._is_over = False
        self._stop = Event()

    @property
    def is_inherited(self) -> bool:
        """Whether this is a forked child. The lease is its parent's."""
        return self._pid != os.getpid()

    @property
    def is_usable(self) -> bool:
        """False after it has ended, in a forked child, and if the process was taken for dead."""
        return not self._is_over and not self.is_inherited

    def start_renewing(self) -> None:
        Thread(target=self._renew_until_stopped, name="overspill-lease", daemon=True).start()

    def stop_renewing(self) -> None:
        self._stop.set()

    def end(self) -> None:
        self._is_over = True
        self.stop_renewing()

    def renew(self) -> bool:
        """Give a sign of life. False if the lease is lost."""
        raise NotImplementedError

    def _renew_until_stopped(self) -> None:
        while not self._stop.wait(self.seconds / _RENEWALS):
            # A server that is away is tried again next time; the sessions that use it report the failure.
            with suppress(StoreError):
                if not self.renew():
                    self._is_over = True
                    return


def lost_session_error(session: str) -> StoreError:
    return StoreError(
        f"Session {session} can no longer write: this process was out of touch with the store for so long that it was taken for "
        "dead. What was stored before is still there. Open the session again."
    )
