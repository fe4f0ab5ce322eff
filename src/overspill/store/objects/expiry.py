"""What the keep limits remove from a bucket. Several workers may do it at once: the service decides each removal."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, groupby

import msgspec

from overspill.store.keep import KeptItem, Measurement
from overspill.store.objects import removal
from overspill.store.objects.bucket import Bucket, Item
from overspill.store.objects.families import map_families, read_opening
from overspill.store.objects.names import Names
from overspill.store.objects.output import USED, Parts, folder
from overspill.store.objects.run import Run
from overspill.text import lenient_json

_MEASURED = "measured"


class KeptObjects:
    """Everything that is kept in a bucket, measured without stopping anybody who writes there meanwhile."""

    def __init__(self, bucket: Bucket, names: Names, run: Run) -> None:
        self._bucket, self._names, self._run = bucket, names, run
        # The openings come first: a session that is not kept, and begins or ends meanwhile, is in neither list or in both.
        openings = list(bucket.list("openings/"))
        kept = {_session_of(item) for item in openings} - {_session_of(item) for item in bucket.list("temporary/")}
        self._families = map_families(bucket)
        self._live = removal.list_live_sessions(bucket, run)
        self._unfinished: list[tuple[str, str]] = []
        self.items: list[KeptItem] = []
        sizes: defaultdict[str, int] = defaultdict(int)
        used: defaultdict[str, float] = defaultdict(float)
        for item in chain(openings, bucket.list("journal/"), bucket.list("used/")):
            session = item.key.split("/")[1]
            sizes[session] += item.size
            used[session] = max(used[session], item.modified)
        for (session, id), items in groupby(bucket.list("data/"), key=_output_of):
            if session in kept:
                self._add(session, id, list(items), sizes, used)
        closed = (each for each in kept if each not in self._live)
        self.items += [KeptItem(each, "", used[each], sizes[each], self._family_of(each)) for each in closed]
        self.bytes: dict[str, int] = {}
        for each in kept:
            self.bytes[self._family_of(each)] = self.bytes.get(self._family_of(each), 0) + sizes[each]

        self.now = run.now()

    def remove_unfinished(self) -> None:
        """Outputs that nobody writes any more."""
        for session, id in self._unfinished:
            removal.delete_unfinished(self._bucket, self._run, session, id)

    def remove(self, item: KeptItem) -> bool:
        bucket, opening = self._bucket, read_opening(self._bucket, item.session)
        if opening is None or opening.retention != "keep":
            return False
        if item.id:
            used = bucket.find(folder(item.session, item.id) + USED)
            if used is not None and used.modified > item.used:
                return False
            return removal.mark_removed(bucket, item.session, item.id)
        return removal.remove_closed(bucket, self._names, self._run, item.session, opening.name)

    def _family_of(self, session: str) -> str:
        return self._families.get(session, "")

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
            self.items.append(KeptItem(session, id, parts.used, parts.size, self._family_of(session)))


def note_measurement(bucket: Bucket, measured: Measurement) -> None:
    bucket.put(_MEASURED, msgspec.json.encode(measured))


def recall_measurement(bucket: Bucket, *, since: float = 0.0) -> Measurement | None:
    """What was kept when any limits were last applied. None if that was not done since, by the clock of the service."""
    found = bucket.find(_MEASURED) if since else None
    content = bucket.get(_MEASURED) if not since or (found is not None and found.modified >= since) else None
    return lenient_json.parse(content[0], Measurement) if content else None


def _output_of(item: Item) -> tuple[str, str]:
    _, session, id, _ = item.key.split("/")
    return session, id


def _session_of(item: Item) -> str:
    """Of an opening, or of what names a session that is not kept."""
    return item.key.rpartition("/")[2]
