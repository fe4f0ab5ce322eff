"""How a session began, which sessions a family has, which processes live, and which session has a name: an object for each.

The key of a family's session holds what a listing shows. Only a process that saw the last version of a name's object changes it.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator
from threading import Lock

import msgspec
from msgspec import Struct

from overspill.errors import StoreError
from overspill.store import keep, rules
from overspill.store.keep import Opening
from overspill.store.objects.bucket import Bucket
from overspill.store.shared.store import Lease
from overspill.text import lenient_json

_AFTER_ALL = "~"  # sorts after every character that follows a session in a key
_ATTEMPTS = 5
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the former also counts while the machine is suspended


def read_opening(bucket: Bucket, session: str) -> Opening | None:
    """How a session began, or None if it does not exist. Always asks the service, because it may have been removed."""
    found = bucket.get(f"openings/{session}") if session else None
    return Opening.parse(session, found[0]) if found else None


def family_keys(opening: Opening) -> list[str]:
    """The keys of a session in its families. For most names, which end with the session's id, they say all of the opening."""
    folders = [f"families/{_digest(family)}/{opening.session}" for family in keep.list_families(opening.name)]
    if opening.name.rpartition("/")[2] == opening.session:
        return [f"{folder}.{opening.retention}" for folder in folders[1:]]
    return [f"{folder}.name" for folder in folders[:1]] + folders[1:]


def list_family(bucket: Bucket, family: str, after: str = "") -> Iterator[tuple[str, Opening | None]]:
    """The sessions after this one, with their openings if their keys contain them."""
    folder = f"families/{_digest(family)}/"
    for item in bucket.list(folder, after=folder + after + _AFTER_ALL if after else ""):
        session, _, retention = item.key.rpartition("/")[2].partition(".")
        is_said = retention in ("session", "process", "keep")
        yield session, Opening(session, f"{family}/{session}", retention) if is_said else None


def family_id(name: str) -> str:
    """The family whose limits a session of this name counts towards, as the keys spell it."""
    family = keep.family_of(name)
    return _digest(family) if family else ""


def map_families(bucket: Bucket) -> dict[str, str]:
    """The family of each session that has one, as the keys spell it."""
    found: dict[str, str] = {}
    for item in bucket.list("families/"):
        _, family, last = item.key.split("/")
        session, _, kind = last.partition(".")
        if kind != "name":
            found[session] = family
    return found


class BucketLease(Lease):
    """An object that a process rewrites regularly as long as it lives. The dates of both objects show whether another process is
    alive. The service sets them, so the clocks of the machines do not matter."""

    def __init__(self, bucket: Bucket, seconds: float) -> None:
        super().__init__(seconds)
        self.lapses = 0
        """How often the lease ran out before it was renewed: others may have taken sessions meanwhile."""
        self._bucket = bucket
        self._key = f"runs/{self.id}"
        self._mutex = Lock()
        self._date = 0.0
        self._renewed = math.inf
        self._written = 0.0
        self._sign()
        self.start_renewing()

    def now(self) -> float:
        """The time of the service, or up to a second later: its dates have no fractions."""
        return self._date + 1 + _elapsed() - self._written

    def is_alive(self, modified: float) -> bool:
        """Whether a process whose object has this date may still live. Both dates may be off by a second."""
        return self.now() - modified <= self.seconds + 2

    def check_lease(self) -> int:
        """Note whether the lease has run out, and return how often that has happened."""
        with self._mutex:
            if _elapsed() - self._renewed > self.seconds:
                self._sign()
            return self.lapses

    def wait_for_renewal(self) -> None:
        """Wait for a renewal in progress, which could otherwise write the object again after it was removed."""
        with self._mutex:
            pass

    def renew(self) -> bool:
        with self._mutex:
            if self.is_usable:
                self._sign()
            return self.is_usable

    def _sign(self) -> None:
        """Renew the lease. Called with the mutex held. The lease may run out while the service is slow to accept the request."""
        started = _elapsed()
        self._bucket.put(self._key)
        written = _elapsed()
        self.lapses += written - self._renewed > self.seconds
        found = self._bucket.find(self._key)
        self._date, self._written = (found.modified if found else time.time()), written
        self._renewed = started


def _elapsed() -> float:
    return time.clock_gettime(_CLOCK)


class NameEntry(Struct, frozen=True):
    session: str
    hold: str = ""
    """The id of the hold; empty if the session is not held."""
    run: str = ""


class Names:
    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def take(self, name: str, wanted: NameEntry, run: BucketLease) -> str:
        """Take the name for a session. Returns the kept session that has it, or the one that wants it."""
        for _ in range(_ATTEMPTS):
            found = self._read(name)
            if found is None:
                if self._bucket.create(_key(name), msgspec.json.encode(wanted)):
                    return wanted.session
                continue
            entry, version = found
            if self._is_held(entry, run):
                raise rules.name_in_use_error(name)
            opening = read_opening(self._bucket, entry.session)
            session = entry.session if opening and opening.retention == "keep" else wanted.session
            if self._replace(name, NameEntry(session, wanted.hold, wanted.run), version):
                return session
        raise StoreError(f"Several processes try to open {name!r} at the same time. Try again.")

    def is_held_by(self, name: str, hold: str) -> bool:
        found = self._read(name)
        return found is not None and found[0].hold == hold

    def release(self, name: str, hold: str, *, keep: bool) -> None:
        """Give up a name. Does nothing if another process has taken it."""
        found = self._read(name)
        if found is None or found[0].hold != hold:
            return
        entry, version = found
        if not keep and rules.is_unique(name, entry.session):
            self._bucket.delete([_key(name)])
        else:
            # Another session may take this name, and an entry cannot be deleted on a condition. One that is not held and that
            # has no session is taken by the next worker.
            self._replace(name, NameEntry(entry.session if keep else ""), version)

    def take_for_removal(self, name: str, session: str, run: BucketLease, hold: str) -> bool:
        """Take the name of a session to remove the session. Returns False if another process holds it: then do not remove it."""
        found = self._read(name)
        if found is None or found[0].session != session:
            return True
        entry, version = found
        return not self._is_held(entry, run) and self._replace(name, NameEntry(session, hold, run.id), version)

    def _read(self, name: str) -> tuple[NameEntry, str] | None:
        found = self._bucket.get(_key(name))
        if found is None:
            return None
        entry = lenient_json.parse(found[0], NameEntry)
        if entry is None:
            raise StoreError(f"The name {name!r} is damaged in {self._bucket.url}. Remove the object {_key(name)} there.")
        return entry, found[1]

    def _replace(self, name: str, entry: NameEntry, version: str) -> bool:
        return self._bucket.replace(_key(name), msgspec.json.encode(entry), version)

    def _is_held(self, entry: NameEntry, run: BucketLease) -> bool:
        found = self._bucket.find(f"runs/{entry.run}") if entry.hold else None
        return found is not None and run.is_alive(found.modified)


def _key(name: str) -> str:
    return f"names/{_digest(name)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
