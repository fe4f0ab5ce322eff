"""Which session has a name, and who holds it: one object for each name, changed only by whoever saw its last version."""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import Struct

from overspill.errors import StoreError
from overspill.store import rules
from overspill.store.objects.bucket import Bucket
from overspill.store.objects.families import read_opening
from overspill.store.objects.run import Run
from overspill.text import lenient_json

_ATTEMPTS = 5


class NameEntry(Struct, frozen=True):
    session: str
    hold: str = ""
    """Empty if nobody holds it."""
    run: str = ""


class Names:
    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def take(self, name: str, wanted: NameEntry, run: Run) -> str:
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
            session = entry.session if self._is_kept(entry.session) else wanted.session
            taken = NameEntry(session, wanted.hold, wanted.run)
            if self._bucket.replace(_key(name), msgspec.json.encode(taken), version):
                return session
        raise StoreError(f"Several processes try to open {name!r} at the same time. Try again.")

    def is_held_by(self, name: str, hold: str) -> bool:
        found = self._read(name)
        return found is not None and found[0].hold == hold

    def release(self, name: str, hold: str, *, keep: bool) -> None:
        """Does nothing if another process has taken it."""
        found = self._read(name)
        if found is None or found[0].hold != hold:
            return
        entry, version = found
        if not keep and rules.is_unique(name, entry.session):
            self._bucket.delete([_key(name)])
            return
        # Another session may take this name, and an entry cannot be deleted on a condition. One that nobody holds and that has no
        # session is taken by whoever comes next.
        self._bucket.replace(_key(name), msgspec.json.encode(NameEntry(entry.session if keep else "")), version)

    def take_for_removal(self, name: str, session: str, run: Run, hold: str) -> bool:
        """False if another process holds it: then the session may not be removed."""
        found = self._read(name)
        if found is None or found[0].session != session:
            return True
        entry, version = found
        if self._is_held(entry, run):
            return False
        return self._bucket.replace(_key(name), msgspec.json.encode(NameEntry(session, hold, run.id)), version)

    def _read(self, name: str) -> tuple[NameEntry, str] | None:
        found = self._bucket.get(_key(name))
        if found is None:
            return None
        entry = lenient_json.parse(found[0], NameEntry)
        if entry is None:
            raise StoreError(f"The name {name!r} is damaged in {self._bucket.url}. Remove the object {_key(name)} there.")
        return entry, found[1]

    def _is_held(self, entry: NameEntry, run: Run) -> bool:
        if not entry.hold:
            return False
        found = self._bucket.find(f"runs/{entry.run}")
        return found is not None and run.is_alive(found.modified)

    def _is_kept(self, session: str) -> bool:
        opening = read_opening(self._bucket, session)
        return opening is not None and opening.retention == "keep"


def _key(name: str) -> str:
    return f"names/{hashlib.sha256(name.encode()).hexdigest()}"
