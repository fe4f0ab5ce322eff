"""How a session began, and which a family has: an empty object for each, whose key says what a listing shows of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from overspill.store import keep
from overspill.store.files.journal import Opening
from overspill.store.listing import list_families
from overspill.store.objects.bucket import Bucket

_AFTER_ALL = "~"  # sorts after every character that follows a session in a key


def read_opening(bucket: Bucket, session: str) -> Opening | None:
    """None if there is no such session. Always asks, because it may have been removed."""
    found = bucket.get(f"openings/{session}") if session else None
    return Opening.parse(session, found[0]) if found else None


def family_keys(opening: Opening) -> list[str]:
    """If the name is a family's and the session's id, as most are, the key says all, and the whole name needs no object."""
    families = list_families(opening.name)
    if opening.name.rpartition("/")[2] != opening.session:
        whole = [f"{_folder(family)}{opening.session}.name" for family in families[:1]]
        return whole + [_folder(family) + opening.session for family in families[1:]]
    return [f"{_folder(family)}{opening.session}.{opening.retention}" for family in families[1:]]


def list_family(bucket: Bucket, family: str, after: str = "") -> Iterator[tuple[str, Opening | None]]:
    """The sessions after this one, and how they began if their keys say so."""
    folder = _folder(family)
    for item in bucket.list(folder, after=folder + after + _AFTER_ALL if after else ""):
        session, _, retention = item.key.rpartition("/")[2].partition(".")
        if retention in ("session", "process", "keep"):
            yield session, Opening(session, f"{family}/{session}", retention)
        else:
            yield session, None


def family_id(name: str) -> str:
    """Whose limits a session of this name counts towards, as the keys spell it."""
    family = keep.family_of(name)
    return hashlib.sha256(family.encode()).hexdigest() if family else ""


def map_families(bucket: Bucket) -> dict[str, str]:
    """The family of each session that has one, as the keys spell it."""
    found: dict[str, str] = {}
    for item in bucket.list("families/"):
        _, family, last = item.key.split("/")
        session, _, kind = last.partition(".")
        if kind != "name":
            found[session] = family
    return found


def _folder(family: str) -> str:
    return f"families/{hashlib.sha256(family.encode()).hexdigest()}/"
