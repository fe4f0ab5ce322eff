"""Store outputs as objects in a bucket, which many processes on many machines share."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import groupby, islice
from typing import Unpack

import msgspec

from overspill import handles
from overspill.errors import StoreError, UnknownHandle
from overspill.store import keep, rules
from overspill.store.keep import Measurement, Opening
from overspill.store.objects import removal
from overspill.store.objects.bucket import Bucket
from overspill.store.objects.names import BucketLease, NameEntry, Names, family_id, family_keys, list_family, read_opening
from overspill.store.objects.output import REMOVED, read_parts
from overspill.store.objects.removal import KeptObjects
from overspill.store.objects.shelf import LiveObjectShelf, ObjectShelf, hold_key
from overspill.store.protocols import Expired, KeepLimits, Retention, ShelfLabel
from overspill.store.shared.shelf import Hold
from overspill.store.shared.store import SharedOptions, SharedStore
from overspill.text import lenient_json

_MEASURED = "measured"
_MAX_KNOWN_OPENINGS = 100_000
_UUID_CHARS = 36


class ObjectStore(SharedStore[BucketLease, LiveObjectShelf]):
    seconds_between_measurements = 600.0  # measuring takes a request for each thousand objects
    _family_of = staticmethod(family_id)

    def __init__(self, url: str, **given: Unpack[SharedOptions]) -> None:
        super().__init__(**given)
        self._bucket = Bucket(url)
        self._names = Names(self._bucket)
        self._is_recalled = False
        self._openings: dict[str, Opening] = {}

    @property
    def url(self) -> str:
        return self._bucket.url

    def read_shelf(self, session: str) -> ObjectShelf:
        self._read_opening(session)
        return ObjectShelf(self._bucket, session, self._copies)

    def label(self, session: str) -> ShelfLabel:
        opening = self._read_opening(session)
        return opening.label(live=bool(removal.list_live_sessions(self._bucket, self.run, session)))

    def shelves(self, *, family: str = "", after: str = "", most: int | None = None) -> list[ShelfLabel]:
        live = removal.list_live_sessions(self._bucket, self.run)
        if family:
            openings = self._list_family(family, after, most)
        else:
            listed = self._bucket.list("openings/", after=f"openings/{after}" if after else "")
            openings = self._read_openings([item.key.rpartition("/")[2] for item in islice(listed, most)])
        return [opening.label(live=session in live) for session, opening in sorted(openings.items())]

    def find_recorded(self, ending: str) -> list[tuple[str, bytes]]:
        keys = [item.key for item in self._bucket.list(f"recorded/{ending}/")]
        lines = self._bucket.get_all(keys) if keys else ()
        return [(key.split("/")[2], line) for key, line in zip(keys, lines, strict=True) if line]

    def remove_shelf(self, session: str) -> None:
        opening = self._read_opening(session)
        run = self.run
        is_live = bool(removal.list_live_sessions(self._bucket, run, session))
        if is_live or not removal.remove_closed(self._bucket, self._names, run, session, opening.name):
            raise rules.still_live_error(session)
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
        run = self.run
        content = KeptObjects(self._bucket, self._names, run)
        content.remove_unfinished()
        expired = keep.expire(content.items, content.bytes, content.remove, limits, now=content.now, family=family)
        if family is None:
            self._bucket.put(_MEASURED, msgspec.json.encode(Measurement(limits, expired.families, run.now())))
        removal.empty_trash(self._bucket, run.now())
        self._release_gone()
        return expired

    def _start_run(self) -> BucketLease:
        run = BucketLease(self._bucket, self._lease_seconds)
        try:
            removal.clear_dead_runs(self._bucket, run, self._remove_after_seconds)
        except BaseException:
            run.end()
            raise
        return run

    def _finish_run(self, run: BucketLease) -> None:
        run.wait_for_renewal()
        removal.remove_run(self._bucket, run.id)

    def _begin(self, opening: Opening, run: BucketLease, hold: str, limits: KeepLimits | None) -> tuple[str, Retention]:
        name, session, kind = opening.name, opening.session, opening.retention
        opened = self._names.take(name, NameEntry(session, hold, run.id), run) if name else session
        is_new = opened == session
        try:
            if is_new:
                if kind != "keep":
                    self._bucket.put(f"temporary/{run.id}/{session}")
                if not self._bucket.create(f"openings/{session}", opening.line):
                    raise rules.already_exists_error(f"session-{session}")
                for key in family_keys(opening):
                    self._bucket.put(key)
            self._bucket.put(hold_key(opened, hold, run))
        except BaseException:
            if name:
                with suppress(StoreError):
                    self._names.release(name, hold, keep=not is_new)
            raise
        kind = kind if is_new else "keep"
        if limits and kind == "keep" and not self._is_recalled:
            self._is_recalled = True
            # Even an old measurement will do: if the limits are due, the first output need not wait until they have been applied.
            with suppress(StoreError):
                found = self._bucket.get(_MEASURED)
                if measured := lenient_json.parse(found[0], Measurement) if found else None:
                    due = self.seconds_between_measurements - measured.age(run.now())
                    self._guard.recall(measured, limits, due_seconds=due)
        return opened, kind

    def _make_shelf(self, session: str, name: str, hold: Hold, run: BucketLease) -> LiveObjectShelf:
        return LiveObjectShelf(self._bucket, session, self._copies, hold, run, self._names, name)

    def _find_stored(self, held: Mapping[str, set[str]]) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for session, ids in held.items():  # a listing has a thousand objects, so it takes few requests
            listed = self._bucket.list(f"data/{session}/", after=f"data/{session}/{min(ids)}")
            for id, items in groupby(listed, key=lambda item: item.key.split("/")[2]):
                if id in ids and not any(item.key.endswith(REMOVED) for item in items):
                    found.add((session, id))
        return found

    def _read_opening(self, session: str) -> Opening:
        rules.check_id(session)
        if (opening := read_opening(self._bucket, session)) is None:
            raise UnknownHandle(f"session-{session}")
        return opening

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
        """How these sessions began, without those that were removed. Openings never change, so only new ones are read."""
        known = self._openings
        if len(known) > _MAX_KNOWN_OPENINGS:
            known = self._openings = {}
        new = [session for session in sessions if session not in known]
        lines = self._bucket.get_all([f"openings/{session}" for session in new]) if new else ()
        known |= {session: Opening.parse(session, line) for session, line in zip(new, lines, strict=True) if line}
        return {session: known[session] for session in sessions if session in known}
