"""Remove outputs and sessions. They are gone for everyone immediately. Their bytes go when no reader can need them."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from itertools import chain, groupby

from overspill.store.keep import KeptItem
from overspill.store.objects.bucket import Bucket, Item
from overspill.store.objects.names import BucketLease, Names, family_keys, map_families, read_opening
from overspill.store.objects.output import REMOVED, USED, Parts, folder, read_parts, recorded_key
from overspill.store.shared.store import READABLE_AFTER_REMOVAL_SECONDS


def list_outputs(bucket: Bucket, session: str) -> list[str]:
    return list(dict.fromkeys(item.key.split("/")[2] for item in bucket.list(f"data/{session}/")))


def mark_removed(bucket: Bucket, session: str, id: str) -> bool:
    """Mark an output as removed. False if it is marked already. The trash comes first: all of it is checked again anyway."""
    bucket.put(f"trash/{session}/{id}")
    return bucket.create(folder(session, id) + REMOVED)


def delete_output(bucket: Bucket, session: str, id: str) -> None:
    """Delete an output's objects, the mark last, so that a half-deleted output stays removed."""
    keys = [item.key for item in bucket.list(folder(session, id))]
    bucket.delete([recorded_key(session, id), *(key for key in keys if not key.endswith(REMOVED))])
    bucket.delete([key for key in keys if key.endswith(REMOVED)])


def delete_session(bucket: Bucket, session: str) -> None:
    """Delete a session: first its families' keys, so that none are left over, then its opening, without which it is gone."""
    if opening := read_opening(bucket, session):
        bucket.delete(family_keys(opening))
    bucket.delete([f"openings/{session}"])
    bucket.delete([recorded_key(session, id) for id in list_outputs(bucket, session)])
    for prefix in (f"data/{session}/", f"journal/{session}/", f"holds/{session}/"):
        bucket.delete([item.key for item in bucket.list(prefix)])
    bucket.delete([f"used/{session}"])


def remove_closed(bucket: Bucket, names: Names, run: BucketLease, session: str, name: str) -> bool:
    """Remove a session of this name, if it has one. False if another process holds it."""
    hold = str(uuid.uuid4())
    if name and not names.take_for_removal(name, session, run, hold):
        return False
    delete_session(bucket, session)
    if name:
        names.release(name, hold, keep=False)
    return True


def empty_trash(bucket: Bucket, now: float) -> None:
    for item in list(bucket.list("trash/")):
        if now - item.modified > READABLE_AFTER_REMOVAL_SECONDS:
            _, session, id = item.key.split("/")
            delete_output(bucket, session, id)
            bucket.delete([item.key])


def clear_dead_runs(bucket: Bucket, run: BucketLease, remove_after_seconds: float) -> None:
    now = run.now()
    for item in list(bucket.list("runs/")):
        dead = item.key.rpartition("/")[2]
        if dead != run.id and now - item.modified > remove_after_seconds:
            remove_run(bucket, dead)


def remove_run(bucket: Bucket, run: str) -> None:
    """Remove what a process did not mean to keep, then its holds, and last its own object."""
    for item in list(bucket.list(f"temporary/{run}/")):
        delete_session(bucket, item.key.rpartition("/")[2])
        bucket.delete([item.key])
    bucket.delete([item.key for item in bucket.list("holds/") if item.key.endswith(f"/{run}")])
    bucket.delete([f"runs/{run}"])


def list_live_sessions(bucket: Bucket, run: BucketLease, session: str = "") -> set[str]:
    """The ids of all live sessions, or only `session`, if it is live."""
    held = [item.key.split("/") for item in bucket.list(f"holds/{session}/" if session else "holds/")]
    if not held:
        return set()
    alive = {item.key.rpartition("/")[2] for item in bucket.list("runs/") if run.is_alive(item.modified)}
    return {key[1] for key in held if key[3] in alive}


class KeptObjects:
    """Everything that is kept in a bucket, measured while others may be writing."""

    def __init__(self, bucket: Bucket, names: Names, run: BucketLease) -> None:
        self._bucket, self._names, self._run = bucket, names, run
        # List the openings first: a session that is not kept, and begins or ends during this, is then in neither list or in both.
        openings = list(bucket.list("openings/"))
        temporary = {item.key.rpartition("/")[2] for item in bucket.list("temporary/")}
        kept = {item.key.rpartition("/")[2] for item in openings} - temporary
        self._families = defaultdict(str, map_families(bucket))
        self._live = list_live_sessions(bucket, run)
        self._unfinished: list[tuple[str, str]] = []
        self.items: list[KeptItem] = []
        sizes: Counter[str] = Counter()
        used: defaultdict[str, float] = defaultdict(float)
        for item in chain(openings, bucket.list("journal/"), bucket.list("used/")):
            session = item.key.split("/")[1]
            sizes[session] += item.size
            used[session] = max(used[session], item.modified)
        for (_, session, id), items in groupby(bucket.list("data/"), key=lambda item: item.key.split("/")[:3]):
            if session in kept:
                self._add(session, id, list(items), sizes, used)
        self.bytes: Counter[str] = Counter()
        for each in kept:
            self.bytes[self._families[each]] += sizes[each]
            if each not in self._live:
                self.items.append(KeptItem(each, "", used[each], sizes[each], self._families[each]))
        self.now = run.now()

    def remove_unfinished(self) -> None:
        """Remove outputs without a writer, unless their session is live again or they were completed: see `ObjectParts`."""
        for session, id in self._unfinished:
            if not list_live_sessions(self._bucket, self._run, session):
                self._bucket.create(mark := folder(session, id) + REMOVED)
                parts = read_parts(self._bucket, session, id)
                if parts is not None and parts.is_done:
                    self._bucket.delete([mark])
                else:
                    delete_output(self._bucket, session, id)

    def remove(self, item: KeptItem) -> bool:
        bucket, opening = self._bucket, read_opening(self._bucket, item.session)
        if opening is None or opening.retention != "keep":
            return False
        if item.id:
            used = bucket.find(folder(item.session, item.id) + USED)
            if used is not None and used.modified > item.used:
                return False
            return mark_removed(bucket, item.session, item.id)
        return remove_closed(bucket, self._names, self._run, item.session, opening.name)

    def _add(self, session: str, id: str, items: list[Item], sizes: dict[str, int], used: dict[str, float]) -> None:
        parts = Parts.of(items)
        is_live = session in self._live
        if parts.is_removed and (parts.is_done or is_live):
            return
        if not parts.is_done and not is_live:
            self._unfinished.append((session, id))
            return
        sizes[session] += parts.size
        used[session] = max(used[session], parts.used)
        if is_live and parts.is_done:
            self.items.append(KeptItem(session, id, parts.used, parts.size, self._families[session]))
