"""Rules of every backend: which ids, names and journal lines are accepted, and what is refused."""

from __future__ import annotations

from overspill import handles
from overspill.errors import BadRequest, MalformedHandle, NameInUse, StoreError

_MAX_NAME_CHARS = 200


def check_id(id: str) -> None:
    if not handles.is_uuid(id):
        raise MalformedHandle(id)


def check_name(name: str) -> None:
    """Check a session's name. An empty string means that the session has no name."""
    if len(name) > _MAX_NAME_CHARS or not name.isprintable():
        raise BadRequest(
            f"{name[:50]!r} cannot name a session: a name has 1 to {_MAX_NAME_CHARS} printable characters, this has {len(name)}."
        )


def is_unique(name: str, session: str) -> bool:
    """Whether no other session can have this name, because it ends with the session's own id."""
    return name.endswith(session)


def split_lines(lines: bytes) -> list[bytes]:
    return [line + b"\n" for line in lines[:-1].split(b"\n")]


def bytes_of(data: bytes | memoryview) -> memoryview:
    """The bytes of a view of any shape."""
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
