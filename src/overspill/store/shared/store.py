"""A store on a server that one process has open: its lease, its sessions, and what they may still write."""

from __future__ import annotations

import atexit
import os
import uuid
from collections.abc import Container, Mapping
from contextlib import ExitStack, suppress
from threading import Event, RLock, Thread
from typing import Generic, TypedDict, TypeVar

from overspill.errors import StoreError, UnknownHandle
from overspill.store import keep, rules
from overspill.store.keep import Opening
from overspill.store.protocols import Expired, KeepLimits, Retention
from overspill.store.quota import GIB, HOUR, KeepGuard, Quota
from overspill.store.shared.shelf import Hold, LocalCopies, SharedShelf

LEASE_SECONDS = 30.0
"""After this long without a sign of life, others may take over a process's sessions."""
REMOVE_AFTER_SECONDS = 600.0
"""After this long without a sign of life, what a process did not mean to keep is removed."""
READABLE_AFTER_REMOVAL_SECONDS = 300.0
"""How long readers that are open can still read a removed output."""
_RENEWALS = 3  # how often a lease is renewed before it would run out


class Lease:
    """A process's presence in the store, not a lock: after a pause, its next write says that it has lost a session."""

    def __init__(self, seconds: float) -> None:
        self.id = str(uuid.uuid4())
        self.seconds = seconds
        self._pid = os.getpid()
        self._is_over = False
        self._stop = Event()

    @property
    def is_usable(self) -> bool:
        """Whether the lease can be used: not after it has ended, in a forked child, or if others considered the process dead."""
        return not self._is_over and self._pid == os.getpid()

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
            # If the server does not answer, try again next time; the sessions that use it report the failure.
            with suppress(StoreError):
                if not self.renew():
                    self._is_over = True
                    return


class SharedOptions(TypedDict, total=False):
    """The options of every store on a server."""

    run_bytes: int
    sweep_seconds: float
    lease_seconds: float
    remove_after_seconds: float


R = TypeVar("R", bound=Lease)
S = TypeVar("S", bound=SharedShelf)


class SharedStore(Generic[R, S]):
    """Does not contact the server before the first call. `close`, or the end of the process, removes what is not to be kept.
    If the server does not answer then, the end of the lease does the same later."""

    seconds_between_measurements: float
    """How often everything that is kept gets measured."""
    _family_of = staticmethod(keep.family_of)
    """The family whose limits a session of this name counts towards, and which may read it by the names of its outputs."""

    def __init__(
        self,
        *,
        run_bytes: int = 10 * GIB,
        sweep_seconds: float = HOUR,
        lease_seconds: float = LEASE_SECONDS,
        remove_after_seconds: float = REMOVE_AFTER_SECONDS,
    ) -> None:
        self._quota = Quota(run_bytes)
        self._guard = KeepGuard(self.expire, sweep_seconds=sweep_seconds, rest_seconds=self.seconds_between_measurements)
        self._lease_seconds, self._remove_after_seconds = lease_seconds, remove_after_seconds
        self._copies = LocalCopies()
        self._run: R | None = None
        self._shelves: dict[str, S] = {}
        self._mutex = RLock()

    @property
    def run(self) -> R:
        """The run of this process. A new one starts on first use, in a forked child, after `close`, and if the lease was lost."""
        with self._mutex:
            if self._run is None or not self._run.is_usable:
                self._run = self._start_run()
                atexit.register(self.close)
            return self._run

    def open_shelf(
        self, session: str, *, name: str = "", retention: Retention = "session", limits: KeepLimits | None = None
    ) -> S:
        rules.check_id(session)
        rules.check_name(name)
        run, hold = self.run, str(uuid.uuid4())
        opened, kind = self._begin(Opening.now(session, name, retention), run, hold, limits)
        family = self._family_of(name)
        quota = self._guard.make_quota(self._quota, opened, family, kind, limits)
        held = Hold(hold, kind, quota, self._end, has_relatives=bool(family))
        with self._mutex:
            shelf = self._shelves[hold] = self._make_shelf(opened, name, held, run)
        return shelf

    def expire(self, limits: KeepLimits, *, family: str | None = None) -> Expired:
        raise NotImplementedError

    def free(self) -> int:
        return self._quota.left

    def _start_run(self) -> R:
        """Make this process known to the server."""
        raise NotImplementedError

    def _finish_run(self, run: R) -> None:
        """Remove what this process did not mean to keep."""
        raise NotImplementedError

    def _begin(self, opening: Opening, run: R, hold: str, limits: KeepLimits | None) -> tuple[str, Retention]:
        """Create the session, or hold the kept one that has its name. Returns the id of that session and its retention."""
        raise NotImplementedError

    def _make_shelf(self, session: str, name: str, hold: Hold, run: R) -> S:
        raise NotImplementedError

    def _find_stored(self, held: Mapping[str, set[str]]) -> Container[tuple[str, str]]:
        """Which of these outputs of each session are stored."""
        raise NotImplementedError

    def _release_gone(self) -> None:
        """Give back the bytes of outputs that are gone, including those that another process has removed."""
        # In this order: an output that is begun after the first line is not checked, and one that is completed after the
        # second is stored.
        held = {session: self._quota.outputs(session) for session in self._quota.sessions()}
        for shelf in list(self._shelves.values()):
            held.get(shelf.session, set()).difference_update(shelf.writers)
        held = {session: ids for session, ids in held.items() if ids}
        stored = self._find_stored(held) if held else ()
        for session, ids in held.items():
            for id in ids:
                if (session, id) not in stored:
                    self._quota.release(session, id)

    def close(self) -> None:
        with self._mutex:
            run, self._run = self._run, None
            with ExitStack() as last:
                last.callback(self._copies.clear)
                if run is not None:
                    atexit.unregister(self.close)
                    last.callback(self._end_run, run)
                for shelf in list(self._shelves.values()):
                    last.callback(shelf.close)

    def _end_run(self, run: R) -> None:
        if run.is_usable:  # in a forked child, the run belongs to the parent
            run.end()
            with suppress(StoreError):
                self._finish_run(run)

    def _end(self, shelf: SharedShelf) -> None:
        assert shelf.hold is not None
        with self._mutex:
            if self._shelves.pop(shelf.hold.id, None) is None:
                return
        self._guard.leave(shelf.session)
        with suppress(StoreError, UnknownHandle):
            shelf.leave(shelf.hold)
        if shelf.hold.retention == "session":
            self._quota.release(shelf.session)
