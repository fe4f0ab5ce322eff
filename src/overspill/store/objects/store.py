"""Store outputs as objects in a bucket, which many processes on many machines share."""

from __future__ import annotations

import atexit
import uuid
from contextlib import ExitStack, suppress
from functools import cache
from itertools import islice
from threading import RLock

from overspill import handles
from overspill.errors import StoreError, UnknownHandle
from overspill.store import rules
from overspill.store.copies import LocalCopies
from overspill.store.files.journal import Opening
from overspill.store.keeping import HOUR, KeepGuard, KeepQuota
from overspill.store.objects import removal
from overspill.store.objects.bucket import Bucket
from overspill.store.objects.expiry import expire, note_measurement, read_measurement
from overspill.store.objects.families import family_id, family_keys, list_family
from overspill.store.objects.names import NameEntry, Names, parse_opening
from overspill.store.objects.output import read_parts
from overspill.store.objects.run import LEASE_SECONDS, REMOVE_AFTER_SECONDS, Run
from overspill.store.objects.shelf import LiveObjectShelf, ObjectShelf
from overspill.store.protocols import Expired, KeepLimits, Retention, ShelfLabel
from overspill.store.quota import GIB, OutputQuota, Quota

_SECONDS_BETWEEN_MEASUREMENTS = 600.0  # of all that is kept, which takes a request for each thousand objects
_MAX_KNOWN_OPENINGS = 100_000
_UUID_CHARS = 36


class ObjectStore:
    """Nothing is asked of the service before the first call. `close`, or the end of the process, removes what is not kept."""

    def __init__(
        self,
        url: str,
        *,
        run_bytes: int = 10 * GIB,
        sweep_seconds: float = HOUR,
        lease_seconds: float = LEASE_SECONDS,
        remove_after_seconds: float = REMOVE_AFTER_SECONDS,
    ) -> None:
        self._bucket = Bucket(url)
        self._names = Names(self._bucket)
        self._lease_seconds = lease_seconds
        self._remove_after_seconds = remove_after_seconds
        self._quota = Quota(run_bytes)
        self._guard = KeepGuard(self._expire_if_due, sweep_seconds=sweep_seconds, rest_seconds=_SECONDS_BETWEEN_MEASUREMENTS)
        self._is_measured = False
        self._copies = LocalCopies()
        self._openings: dict[str, Opening] = {}
        self._run: Run | None = None
        self._shelves: dict[str, LiveObjectShelf] = {}
        self._mutex = RLock()

    @property
    def url(self) -> str:
        return self._bucket.url

    def open_shelf(
        self, session: str, *, name: str = "", retention: Retention = "session", limits: KeepLimits | None = None
    ) -> LiveObjectShelf:
        rules.check_id(session)
        rules.check_name(name)
        run = self._ensure_run()
        hold = str(uuid.uuid4())
        opened = self._names.take(name, NameEntry(session, hold, run.id), run) if name else session
        try:
            kind = self._begin(opened, Opening.now(session, name, retention), run, hold, is_new=opened == session)
        except BaseException:
            if name:
                with suppress(StoreError):
                    self._names.release(name, hold, keep=opened != session)
            raise
        quota: OutputQuota = self._quota
        if limits and kind == "keep":
            quota = KeepQuota(self._quota, self._guard, limits, family_id(name))
            self._guard.join(opened, limits)
        shelf = LiveObjectShelf(
            self._bucket,
            self._copies,
            opened,
            run=run,
            hold=hold,
            retention=kind,
            quota=quota,
            still_has_name=lambda: self._still_has(opened, name, hold),
            ended=self._end_session,
        )
        with self._mutex:
            self._shelves[hold] = shelf
        return shelf

    def read_shelf(self, session: str) -> ObjectShelf:
        self._read_opening(session)
        return ObjectShelf(self._bucket, self._copies, session)

    def label(self, session: str) -> ShelfLabel:
        opening = self._read_opening(session)
        is_live = bool(removal.list_live_sessions(self._bucket, self._ensure_run(), session))
        return ShelfLabel(session, live=is_live, name=opening.name, retention=opening.retention)

    def shelves(self, *, family: str = "", after: str = "", most: int | None = None) -> list[ShelfLabel]:
        live = removal.list_live_sessions(self._bucket, self._ensure_run())
        openings = self._list_family(family, after, most) if family else self._list_all(after, most)
        return [
            ShelfLabel(session, live=session in live, name=opening.name, retention=opening.retention)
            for session, opening in sorted(openings.items())
        ]

    def remove_shelf(self, session: str) -> None:
        opening = self._read_opening(session)
        run, hold = self._ensure_run(), str(uuid.uuid4())
        is_live = bool(removal.list_live_sessions(self._bucket, run, session))
        if is_live or (opening.name and not self._names.take_for_removal(opening.name, session, run, hold)):
            raise rules.still_live_error(session)
        removal.delete_session(self._bucket, session)
        if opening.name:
            self._names.release(opening.name, hold, keep=False)
        self._quota.release(session)

    def empty_shelf(self, session: str) -> int:
        self._read_opening(session)
        removed = 0
        for id in removal.list_outputs(self._bucket, session):
            parts = read_parts(self._bucket, session, id)
            if parts and parts.is_done and not parts.is_removed and removal.mark_removed(self._bucket, session, id):
                self._quota.release(session, id)
                removed += 1
        return removed

    def expire(self, limits: KeepLimits, *, family: str | None = None) -> Expired:
        run = self._ensure_run()
        expired = expire(self._bucket, self._names, run, limits, family)
        if family is None:
            note_measurement(self._bucket, limits, expired.families)
        removal.empty_trash(self._bucket, run.now())
        self._release_gone()
        return expired

    def _expire_if_due(self, limits: KeepLimits, *, family: str | None = None) -> Expired:
        """The first time, nothing is removed if another process has just applied the same limits, or stricter ones. Later, what
        this process has stored since would be missing in what the other has measured."""
        is_first, self._is_measured = not self._is_measured, True
        if not is_first or family is not None:
            return self.expire(limits, family=family)
        measured = read_measurement(self._bucket, limits, since=self._ensure_run().now() - _SECONDS_BETWEEN_MEASUREMENTS)
        return self.expire(limits) if measured is None else Expired([], [], sum(measured.values()), measured)

    def free(self) -> int:
        return self._quota.left

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

    def _ensure_run(self) -> Run:
        with self._mutex:
            if self._run is None or not self._run.is_usable:
                self._run = Run(self._bucket, self._lease_seconds)
                atexit.register(self.close)
                removal.clear_dead_runs(self._bucket, self._run, self._remove_after_seconds)
            return self._run

    def _end_run(self, run: Run) -> None:
        if not run.is_usable:
            return
        # If the service is away, the end of the lease does the same later.
        with suppress(StoreError):
            run.end()
            removal.remove_run(self._bucket, run.id)

    def _begin(self, opened: str, opening: Opening, run: Run, hold: str, *, is_new: bool) -> Retention:
        """Create the session, or hold the kept one that has its name."""
        if is_new:
            if opening.retention != "keep":
                self._bucket.put(f"temporary/{run.id}/{opened}")
            if not self._bucket.create(f"openings/{opened}", opening.line):
                raise rules.already_exists_error(f"session-{opened}")
            for key in family_keys(opening):
                self._bucket.put(key)
        self._bucket.put(f"holds/{opened}/{hold}/{run.id}")
        return opening.retention if is_new else "keep"

    def _still_has(self, session: str, name: str, hold: str) -> bool:
        has_name = not name or self._names.is_held_by(name, hold)
        return has_name and self._bucket.find(f"openings/{session}") is not None

    def _end_session(self, shelf: LiveObjectShelf) -> None:
        with self._mutex:
            if self._shelves.pop(shelf.hold, None) is None:
                return
        self._guard.leave(shelf.session)
        # If the service is away, the lease ends what cannot be ended now.
        with suppress(StoreError, UnknownHandle):
            self._leave(shelf, shelf.run_id)
        if shelf.retention == "session":
            self._quota.release(shelf.session)

    def _leave(self, shelf: LiveObjectShelf, run: str) -> None:
        session = shelf.session
        name = self._read_opening(session).name
        if name and not self._names.is_held_by(name, shelf.hold):
            self._bucket.delete([f"holds/{session}/{shelf.hold}/{run}"])
            return
        if shelf.retention == "session":
            removal.delete_session(self._bucket, session)
            self._bucket.delete([f"temporary/{run}/{session}"])
        else:
            self._bucket.put(f"used/{session}")
            self._bucket.delete([f"holds/{session}/{shelf.hold}/{run}"])
        if name:
            self._names.release(name, shelf.hold, keep=shelf.retention == "keep")

    def _release_gone(self) -> None:
        """Including what another process has removed, which would otherwise be freed only in that process's quota."""
        writing = {(shelf.session, id) for shelf in list(self._shelves.values()) for id in shelf.list_writing()}
        for session in self._quota.sessions():
            for id in self._quota.outputs(session):
                parts = None if (session, id) in writing else read_parts(self._bucket, session, id)
                if (session, id) not in writing and (parts is None or parts.is_removed):
                    self._quota.release(session, id)

    def _read_opening(self, session: str) -> Opening:
        """Always asks, because the session may have been removed."""
        rules.check_id(session)
        found = self._bucket.get(f"openings/{session}")
        if found is None:
            raise UnknownHandle(f"session-{session}")
        return parse_opening(session, found[0])

    def _list_all(self, after: str, most: int | None) -> dict[str, Opening]:
        listed = self._bucket.list("openings/", after=f"openings/{after}" if after else "")
        return self._read_openings([item.key.rpartition("/")[2] for item in islice(listed, most)])

    def _list_family(self, family: str, after: str, most: int | None) -> dict[str, Opening]:
        listed = dict(islice(list_family(self._bucket, family, after), most))
        found = self._read_openings([session for session, opening in listed.items() if opening is None])
        found |= {session: opening for session, opening in listed.items() if opening is not None}
        last = family[-_UUID_CHARS:]
        if handles.is_uuid(last) and last > after:
            with suppress(UnknownHandle):
                opening = self._read_opening(last)
                found |= {last: opening} if opening.name == family else {}
        return {session: found[session] for session in sorted(found)[:most]}

    def _read_openings(self, sessions: list[str]) -> dict[str, Opening]:
        """Without those that have been removed. They never change, so that only new ones are read."""
        known = self._openings
        if len(known) > _MAX_KNOWN_OPENINGS:
            known = self._openings = {}
        new = [session for session in sessions if session not in known]
        lines = self._bucket.get_all([f"openings/{session}" for session in new]) if new else ()
        known |= {session: parse_opening(session, line) for session, line in zip(new, lines, strict=True) if line}
        return {session: known[session] for session in sessions if session in known}


@cache
def object_store(url: str, run_bytes: int) -> ObjectStore:
    """One store for each bucket and prefix in a process, so that its sessions share a lease and a quota."""
    return ObjectStore(url, run_bytes=run_bytes)
