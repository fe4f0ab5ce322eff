"""What one process has open in a store on a server: its lease, its sessions, and what they may still write."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Container, Mapping
from contextlib import ExitStack, suppress
from threading import RLock
from typing import Generic, TypeVar

from overspill.errors import StoreError, UnknownHandle
from overspill.store.protocols import KeepLimits, Retention
from overspill.store.quota import KeepGuard, Quota
from overspill.store.shared.lease import Lease
from overspill.store.shared.output import LocalCopies
from overspill.store.shared.shelf import Hold, SharedShelf

R = TypeVar("R", bound=Lease)
S = TypeVar("S", bound=SharedShelf)


class OpenSessions(Generic[R]):
    """`start` makes this process known to the server, and `finish` removes what it did not mean to keep. If the server is away
    when a session or the process ends, the end of the lease does the same later."""

    def __init__(
        self,
        start: Callable[[], R],
        finish: Callable[[R], None],
        *,
        guard: KeepGuard,
        run_bytes: int,
    ) -> None:
        self.quota = Quota(run_bytes)
        self._start = start
        self._finish = finish
        self._guard = guard
        self.copies = LocalCopies()
        self._run: R | None = None
        self._shelves: dict[str, SharedShelf] = {}
        self._mutex = RLock()

    @property
    def run(self) -> R:
        """Started by the first call, and again in a forked child, after `close`, and if this process was taken for dead."""
        with self._mutex:
            if self._run is None or not self._run.is_usable:
                self._run = self._start()
                atexit.register(self.close)
            return self._run

    def hold(self, session: str, id: str, run: R, retention: Retention, limits: KeepLimits | None, family: str) -> Hold:
        """`family` is whose limits the session counts towards, and who reads it by the names of its outputs."""
        quota = self._guard.make_quota(self.quota, session, family, retention, limits)
        return Hold(id, run, retention, quota, self._end, has_relatives=bool(family))

    def add(self, hold: Hold, shelf: S) -> S:
        with self._mutex:
            self._shelves[hold.id] = shelf
        return shelf

    def release_gone(self, find_stored: Callable[[Mapping[str, set[str]]], Container[tuple[str, str]]]) -> None:
        """Give back the bytes of outputs that are gone, including those that another process has removed. `find_stored` gets the
        outputs of each session that count here and finds those of them that are stored."""
        # In this order: an output that is begun after the first line is not looked at, and one that is completed after the
        # second is stored.
        held = {session: self.quota.outputs(session) for session in self.quota.sessions()}
        for shelf in list(self._shelves.values()):
            held.get(shelf.session, set()).difference_update(shelf.list_writing())
        held = {session: ids for session, ids in held.items() if ids}
        stored = find_stored(held) if held else ()
        for session, ids in held.items():
            for id in ids:
                if (session, id) not in stored:
                    self.quota.release(session, id)

    def close(self) -> None:
        with self._mutex:
            run, self._run = self._run, None
            with ExitStack() as last:
                last.callback(self.copies.clear)
                if run is not None:
                    atexit.unregister(self.close)
                    last.callback(self._end_run, run)
                for shelf in list(self._shelves.values()):
                    last.callback(shelf.close)

    def _end_run(self, run: R) -> None:
        if run.is_usable:  # or else, in a forked child, it is the parent's
            run.end()
            with suppress(StoreError):
                self._finish(run)

    def _end(self, shelf: SharedShelf) -> None:
        assert shelf.hold is not None
        with self._mutex:
            if self._shelves.pop(shelf.hold.id, None) is None:
                return
        self._guard.leave(shelf.session)
        with suppress(StoreError, UnknownHandle):
            shelf.leave(shelf.hold)
        if shelf.hold.retention == "session":
            self.quota.release(shelf.session)
