"""What every store for outputs can do: append, commit, ranged read, list. Does not assume paths, so object storage fits too.

A `Store` is a root that many processes may share. A `Shelf` is one session's part of it: the session that opened it holds it
live until it closes it, and is its only writer. All methods block; callers on an event loop run them in a worker thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

Retention: TypeAlias = Literal["session", "process", "keep"]


class ShelfLabel(Struct, frozen=True):
    """What is known about a shelf without opening it."""

    session: str
    live: bool
    name: str = ""
    retention: Retention = "session"


class KeepLimits(Struct, frozen=True):
    """How long and how much retention `keep` stores."""

    days: float
    bytes: int

    def is_as_strict_as(self, other: KeepLimits) -> bool:
        return self.days <= other.days and self.bytes <= other.bytes


class Expired(Struct, frozen=True):
    """What the keep limits removed, and how many bytes are kept now."""

    sessions: list[str]
    outputs: list[str]
    """Ids of outputs whose sessions are live."""
    bytes: int
    families: dict[str, int] = {}
    """The bytes that each family keeps now, by the store's name for it."""


class Reader(Protocol):
    """Random access to the bytes of one output. If it is still being written, to the bytes stored so far."""

    @property
    def size(self) -> int: ...
    def read(self, start: int, end: int) -> bytes:
        """Bytes start..end, clipped to the stored bytes."""
        ...

    def buffer(self) -> memoryview:
        """All bytes, without copying them to the heap if the backend can. Valid until `close`."""
        ...

    @property
    def is_removed(self) -> bool:
        """Whether the output was removed after it was opened. An open output stays readable."""
        ...

    def close(self) -> None: ...


class Writer(Protocol):
    """An output that is being written, by one thread at a time. A shelf may have many writers at the same time."""

    @property
    def size(self) -> int: ...
    def append(self, data: bytes | memoryview) -> None:
        """Store all of `data`, or as much as fits and raise StoreFull, or raise StoreError. `size` says how much is stored. That
        stays readable and may still be committed."""

    def commit(self) -> None:
        """Mark the output as complete; nothing can be added afterwards. Calling it twice is harmless."""

    def discard(self) -> None:
        """Remove the output without a trace. Does nothing after `commit`."""


class Shelf(Protocol):
    @property
    def session(self) -> str:
        """The id of its session. A kept shelf that was reopened by name has another id than the one passed to `open_shelf`."""
        ...

    def create(self, id: str) -> Writer:
        """Begin an output. Raises StoreError if the id is taken, and MalformedHandle if it is not a bare UUID."""
        ...

    def open(self, id: str) -> Reader:
        """Open an output that is complete or still being written. Raises UnknownHandle if it does not exist."""
        ...

    def note_read(self, id: str) -> None:
        """Note that an output was read, for the keep limits. Works on a shelf opened for reading too, and never fails."""

    def last_used(self, id: str) -> float:
        """When an output was last written or read, in unix seconds. Servers do not note every read. Raises UnknownHandle."""
        ...

    def append_journal(self, lines: bytes) -> None:
        """Append whole lines, each ending with LF. Readers see either all of them or none."""

    def journal(self) -> Iterator[bytes]:
        """The journal's whole lines, oldest first, without a torn last line. The store writes the first:
        {"event":"session","session":…,"name":…,"retention":…,"t":unix ms}."""
        ...

    def read_on(self, position: int) -> tuple[list[bytes], int]:
        """The journal's lines after a position, which is 0 at first, and the position after them. Some may come twice."""
        ...

    def remove_unrecorded(self, recorded: Collection[str]) -> int:
        """Remove the outputs whose ids are not among these, complete or not, and return how many bytes they had. For a shelf that
        was just reopened: a process that died may have left unrecorded outputs. Keeps outputs that the journal may have
        failed to record."""
        ...

    def close(self) -> None:
        """Release the session. Removes what its retention does not keep."""


class Store(Protocol):
    @property
    def url(self) -> str:
        """The address of the store, in the form that `open_store` takes."""
        ...

    def open_shelf(
        self, session: str, *, name: str = "", retention: Retention = "session", limits: KeepLimits | None = None
    ) -> Shelf:
        """Open a new, live shelf. If a kept shelf has that name, reopen it, and it stays kept. Raises NameInUse while a live
        session has that name. For a kept shelf, `limits` apply while it is live; writing more raises StoreFull."""
        ...

    def read_shelf(self, session: str) -> Shelf:
        """Open any session's shelf for reading only: its writing methods raise StoreError, its `close` removes nothing. Raises
        UnknownHandle if the session does not exist."""
        ...

    def label(self, session: str) -> ShelfLabel:
        """The label of one shelf, without reading the others. Raises UnknownHandle if it does not exist."""
        ...

    def shelves(self, *, family: str = "", after: str = "", most: int | None = None) -> list[ShelfLabel]:
        """The shelves of every run, ordered by session and so oldest first. If there is a `family`, only those named `family` or
        `family/x`, where `x` has no slash. For a page, only those after the session `after`, and at most `most`."""
        ...

    def find_recorded(self, ending: str) -> list[tuple[str, bytes]]:
        """Sessions, and the lines of their journals about stored outputs whose ids end with `ending`. Searches only an index: an
        output not found here may still be in a journal."""
        ...

    def remove_shelf(self, session: str) -> None:
        """Remove a session's shelf. Raises StoreError while it is live."""

    def empty_shelf(self, session: str) -> int:
        """Remove the complete outputs of a shelf and return how many. The session of a live shelf continues without them."""
        ...

    def expire(self, limits: KeepLimits, *, family: str | None = None) -> Expired:
        """Remove kept shelves that are closed, and outputs of live ones, if they were unused for too many days. Then, while a
        family keeps too many bytes, remove its longest unused ones, but nothing that was used in the last 24 hours. With
        `family`, named as in `Expired`, only that family is reduced."""
        ...

    def free(self) -> int:
        """Bytes that may still be written."""
        ...

    def close(self) -> None:
        """Close the shelves opened here and remove what is not to be kept. The store may be used again."""
