"""What holds in every backend: which ids, names and journal lines are accepted, and what the keep limits remove."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from overspill import handles
from overspill.errors import BadRequest, MalformedHandle, NameInUse, StoreError

_LONGEST_NAME = 200
_DAY = 86_400


class KeptShelf(Struct, frozen=True):
    session: str
    live: bool
    used: float
    """Unix seconds of the last use."""
    bytes: int


def check_id(id: str) -> None:
    if not handles.is_uuid(id):
        raise MalformedHandle(id)


def check_name(name: str) -> None:
    """Of a session; empty is no name."""
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise BadRequest(
            f"{name[:50]!r} cannot name a session: a name has 1 to {_LONGEST_NAME} printable characters, this has {len(name)}."
        )


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


def expired_sessions(shelves: Sequence[KeptShelf], *, now: float, days: float, total_bytes: int) -> list[str]:
    """Sessions to remove: those unused for longer than `days`, then the longest unused until all that stay, live ones included,
    have at most `total_bytes`. Never a live one."""
    closed = sorted((shelf for shelf in shelves if not shelf.live), key=lambda shelf: (shelf.used, shelf.session))
    excess = sum(shelf.bytes for shelf in shelves) - total_bytes
    doomed: list[str] = []
    for shelf in closed:
        if now - shelf.used > days * _DAY or excess > 0:
            doomed.append(shelf.session)
            excess -= shelf.bytes
    return doomed
