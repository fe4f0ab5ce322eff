"""Rules of every backend: which ids, names and journal lines are accepted, and what the keep limits remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from overspill import handles
from overspill.errors import BadRequest, MalformedHandle, NameInUse, StoreError
from overspill.store.protocols import Expired, KeepLimits

_MAX_NAME_CHARS = 200
DAY = 86_400


class KeptItem(Struct, frozen=True):
    """What the keep limits remove as one: a closed session, or one output of a live session."""

    session: str
    id: str
    """The id of the output; empty for a session."""
    used: float
    """Unix seconds of the last time it was written or read."""
    bytes: int
    family: str = ""
    """Whose limit it counts towards."""


def family_of(name: str) -> str:
    """Whose limits a session of this name counts towards. Those of no family share theirs."""
    return name.rpartition("/")[0]


def check_id(id: str) -> None:
    if not handles.is_uuid(id):
        raise MalformedHandle(id)


def check_name(name: str) -> None:
    """Check a session's name. An empty one means that it has none."""
    if len(name) > _MAX_NAME_CHARS or not name.isprintable():
        raise BadRequest(
            f"{name[:50]!r} cannot name a session: a name has 1 to {_MAX_NAME_CHARS} printable characters, this has {len(name)}."
        )


def is_unique(name: str, session: str) -> bool:
    """Whether no other session can have this name, because it ends with the session's own id."""
    return name.endswith(session)


def check_lines(lines: bytes) -> None:
    if not lines.endswith(b"\n"):
        raise StoreError("A journal holds whole lines. End each with a line feed.")


def bytes_of(data: bytes | memoryview) -> memoryview:
    """Flat bytes of whatever shape a view has."""
    view = memoryview(data)
    return view.cast("B") if view.c_contiguous and view.nbytes else memoryview(view.tobytes())


def name_in_use_error(name: str) -> NameInUse:
    return NameInUse(f"The session {name!r} is open elsewhere. Close it there first, or choose another name.")


def still_live_error(session: str) -> StoreError:
    return StoreError(f"Session {session} is live and cannot be removed. Close it first.")


def already_exists_error(handle: str) -> StoreError:
    return StoreError(f"{handle} is already stored, and nothing is ever overwritten. Take a new id.")


def closed_error(what: str) -> StoreError:
    return StoreError(f"The {what} is closed and takes no more calls. Open it again.")


def read_only_error(session: str) -> StoreError:
    return StoreError(f"Session {session} was opened for reading only. Only the session itself writes to its shelf.")


def expired_items(
    items: Sequence[KeptItem], kept_bytes: Mapping[str, int], limits: KeepLimits, *, now: float, family: str | None = None
) -> list[KeptItem]:
    """Items to remove: those unused for too long, then the longest unused of each family until `kept_bytes`, the size of all that
    it keeps, is within the limit. Size alone never removes what was used in the last 24 hours, nor, if a family is given, what
    belongs to another."""
    excess = {each: kept - limits.bytes for each, kept in kept_bytes.items()}
    doomed: list[KeptItem] = []
    for item in sorted(items, key=lambda item: (item.used, item.session, item.id)):
        unused = now - item.used
        is_too_much = excess.get(item.family, 0) > 0 and family in (None, item.family)
        if unused > limits.days * DAY or (is_too_much and unused > DAY):
            doomed.append(item)
            excess[item.family] = excess.get(item.family, 0) - item.bytes
    return doomed


def describe_expired(removed: Sequence[KeptItem], kept_bytes: Mapping[str, int]) -> Expired:
    """`kept_bytes` is what each family kept before these were removed."""
    left = dict(kept_bytes)
    for item in removed:
        left[item.family] = left.get(item.family, 0) - item.bytes
    return Expired(
        sessions=[item.session for item in removed if not item.id],
        outputs=[item.id for item in removed if item.id],
        bytes=sum(left.values()),
        families=left,
    )
