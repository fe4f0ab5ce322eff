"""Store outputs as objects in a bucket, which many processes on many machines share."""

from __future__ import annotations

import uuid
from contextlib import suppress
from itertools import islice

import msgspec

from overspill import handles
from overspill.errors import StoreError, UnknownHandle
from overspill.store import keep, rules
from overspill.store.keep import Measurement, Opening
from overspill.store.objects import removal
from overspill.store.objects.bucket import Bucket
from overspill.store.objects.names import NameEntry, Names, family_id, family_keys, list_family, read_opening
from overspill.store.objects.output import read_parts
from overspill.store.objects.removal import KeptObjects
from overspill.store.objects.run import Run
from overspill.store.objects.shelf import LiveObjectShelf, ObjectShelf, hold_key
from overspill.store.protocols import Expired, KeepLimits, Retention, ShelfLabel
from overspill.store.quota import GIB, HOUR, KeepGuard
from overspill.store.shared.lease import LEASE_SECONDS, REMOVE_AFTER_SECONDS
from overspill.store.shared.open_sessions import OpenSessions
from overspill.text import lenient_json

_MEASURED = "measured"
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
        self._guard = KeepGuard(self.expire, sweep_seconds=sweep_seconds, rest_seconds=_SECONDS_BETWEEN_MEASUREMENTS)
        self._open = OpenSessions(self._start_run, self._finish_run, guard=self._guard, run_bytes=run_bytes)
        self._is_recalled = False
        self._openings: dict[str, Opening] = {}

    @property
    def url(self) -> str:
        return self._bucket.url

    def open_shelf(
        self, session: str, *, name: str = "", retention: Retention = "session", limits: KeepLimits | None = None
    ) -> LiveObjectShelf:
        rules.check_id(session)
        rules.check_name(name)
        run = self._open.run
        hold = str(uuid.uuid4())
        opened = self._names.take(name, NameEntry(session, hold, run.id), run) if name else session
        try:
            kind = self._begin(opened, Opening.now(session, name, retention), run, hold, is_new=opened == session)
        except BaseException:
            if name:
                with suppress(StoreError):
                    self._names.release(name, hold, keep=opened != session)
            raise
        if limits and kind == "keep":
            self._recall_measurement(limits)
        held = self._open.hold(opened, hold, run, kind, limits, family_id(name))
        shelf = LiveObjectShelf(self._bucket, self._names, opened, name, self._open.copies, held, run)
        return self._open.add(held, shelf)

    def read_shelf(self, session: str) -> ObjectShelf:
        self._read_opening(session)
        return ObjectShelf(self._bucket, session, self._open.copies)

    def label(self, session: str) -> ShelfLabel:
        opening = self._read_opening(session)
        return opening.label(live=bool(removal.list_live_sessions(self._bucket, self._open.run, session)))

    def shelves(self, *, family: str = "", after: str = "", most: int | None = None) -> list[ShelfLabel]:
        live = removal.list_live_sessions(self._bucket, self._open.run)
        openings = self._list_family(family, after, most) if family else self._list_all(after, most)
        return [opening.label(live=session in live) for session, opening in sorted(openings.items())]

    def find_recorded(self, ending: str) -> list[tuple[str, bytes]]:
        keys = [item.key for item in self._bucket.list(f"recorded/{ending}/")]
        lines = self._bucket.get_all(keys) if keys else ()
        return [(key.split("/")[2], line) for key, line in zip(keys, lines, strict=True) if line]

    def remove_shelf(self, session: str) -> None:
        opening = self._read_opening(session)
        run = self._open.run
        is_live = bool(removal.list_live_sessions(self._bucket, run, session))
        if is_live or not removal.remove_closed(self._bucket, self._names, run, session, opening.name):
            raise rules.still_live_error(session)
        self._open.quota.release(session)

    def empty_shelf(self, session: str) -> int:
        self._read_opening(session)
        removed = 0
        for id in removal.list_outputs(self._bucket, session):
            parts = read_parts(self._bucket, session, id)
            if parts and parts.is_done and not parts.is_removed and removal.mark_removed(self._bucket, session, id):
                self._open.quota.release(session, id)
                removed += 1
        return removed

    def expire(self, limits: KeepLimits, *, family: str | None = None) -> Expired:
        run = self._open.run
        content = KeptObjects(self._bucket, self._names, run)
        content.remove_unfinished()
        expired = keep.expire(content.items, content.bytes, content.remove, limits, now=content.now, family=family)
        if family is None:
            self._bucket.put(_MEASURED, msgspec.json.encode(Measurement(limits, expired.families, run.now())))
        removal.empty_trash(self._bucket, run.now())
        self._open.release_gone(lambda held: removal.find_outputs(self._bucket, held))
        return expired

    def _recall_measurement(self, limits: KeepLimits) -> None:
        """However old it is: the limits may be due, but the first output need not wait until they have been applied."""
        if not self._is_recalled:
            self._is_recalled = True
            with suppress(StoreError):
                found = self._bucket.get(_MEASURED)
                if (measured := lenient_json.parse(found[0], Measurement) if found else None) is not None:
                    age = measured.age(self._open.run.now())
                    self._guard.recall(measured, limits, due_seconds=_SECONDS_BETWEEN_MEASUREMENTS - age)

    def free(self) -> int:
        return self._open.quota.left

    def close(self) -> None:
        self._open.close()

    def _start_run(self) -> Run:
        run = Run(self._bucket, self._lease_seconds)
        try:
            removal.clear_dead_runs(self._bucket, run, self._remove_after_seconds)
        except BaseException:
            run.end()
            raise
        return run

    def _finish_run(self, run: Run) -> None:
        run.wait_for_renewal()
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
        self._bucket.put(hold_key(opened, hold, run))
        return opening.retention if is_new else "keep"

    def _read_opening(self, session: str) -> Opening:
        rules.check_id(session)
        if (opening := read_opening(self._bucket, session)) is None:
            raise UnknownHandle(f"session-{session}")
        return opening

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
        known |= {session: Opening.parse(session, line) for session, line in zip(new, lines, strict=True) if line}
        return {session: known[session] for session in sessions if session in known}
