"""What every place for outputs can do: append, commit, ranged read, list. No path semantics, so that object storage fits too.

A `Store` is a root that many processes may share. A `Shelf` is one session's part of it: the session that opened it holds it
live until it closes it, and is its only writer. All methods block; callers on an event loop run them in a worker thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

Retention: TypeAlias = Literal["session", "process", "keep"]


class ShelfLabel(Struct, frozen=True):
    """What can be known of a shelf without opening it."""

    session: str
    live: bool
    name: str = ""
    retention: Retention = "session"


class KeepLimits(Struct, frozen=True):
    """How long, and how much, retention `keep` keeps."""

    days: float
    bytes: int


class Expired(Struct, frozen=True):
    """What the keep limits removed, and how many bytes are kept now."""

    sessions: list[str]
    outputs: list[str]
    """Ids of outputs whose sessions are live."""
    bytes: int


class Reader(Protocol):
    """Random access to the bytes of one output; of a running one, to what has been committed to it so far."""

    @property
    def size(self) -> int: ...
    def read(self, start: int, end: int) -> bytes:
        """Bytes start..end, clipped to what there is."""
        ...

    def buffer(self) -> memoryview:
        """All bytes without copying them to the heap where the backend can; valid until `close`."""
        ...

    @property
    def is_removed(self) -> bool:
        """Whether its output was removed since it was opened. What is open stays readable."""
        ...

    def close(self) -> None: ...


class Writer(Protocol):
    """One output on its way in. One thread at a time writes to it; a shelf may have many writers at once."""

    @property
    def size(self) -> int: ...
    def append(self, data: bytes | memoryview) -> None:
        """All of data; or as much as fits, and then StoreFull; or StoreError. `size` tells what is stored, and that stays
        readable and may still be committed."""
        ...

    def commit(self) -> None:
        """It is complete and takes no more. Harmless when done twice."""
        ...

    def discard(self) -> None:
        """Leave no trace. Harmless after commit."""
        ...


class Shelf(Protocol):
    @property
    def session(self) -> str:
        """Its own id: of a kept shelf opened again by name not the one asked for."""
        ...

    def create(self, id: str) -> Writer:
        """StoreError where that id is taken; nothing is overwritten. Every id here is a bare UUID, else MalformedHandle."""
        ...

    def open(self, id: str) -> Reader:
        """Of a committed output, or of one still being written. UnknownHandle where there is neither."""
        ...

    def note_read(self, id: str) -> None:
        """An output was read now; the keep limits go by that. Also on a shelf opened for reading; never fails."""
        ...

    def append_journal(self, lines: bytes) -> None:
        """Whole lines, each ending with LF: all of them, or none that a reader would ever see."""
        ...

    def journal(self) -> Iterator[bytes]:
        """The journal's whole lines, oldest first; a torn last line is left out. The first is the store's own:
        {"event":"session","session":…,"name":…,"retention":…,"t":unix ms}."""
        ...

    def close(self) -> None:
        """End the session's hold. What retention does not keep is removed."""
        ...


class Store(Protocol):
    @property
    def url(self) -> str:
        """Where it is, as `open_store` takes it."""
        ...

    def open_shelf(
        self, session: str, *, name: str = "", retention: Retention = "session", limits: KeepLimits | None = None
    ) -> Shelf:
        """A new shelf, held live; with a name that a kept shelf has, that one again, and it stays kept. NameInUse while a live
        session has that name. Where it is kept, `limits` are applied now and as long as it is live; what does not fit in them
        is StoreFull."""
        ...

    def read_shelf(self, session: str) -> Shelf:
        """Any session's shelf, for reading only: its writing methods raise StoreError, its `close` removes nothing. UnknownHandle
        where there is none."""
        ...

    def label(self, session: str) -> ShelfLabel:
        """Of one shelf, without looking at the others. UnknownHandle where there is none."""
        ...

    def shelves(self) -> list[ShelfLabel]:
        """Of every run, oldest first."""
        ...

    def remove_shelf(self, session: str) -> None:
        """StoreError while it is live."""
        ...

    def empty_shelf(self, session: str) -> int:
        """Remove the complete outputs of a shelf, also of a live one: its session continues without them. Returns how many."""
        ...

    def expire(self, limits: KeepLimits) -> Expired:
        """Remove the kept shelves that are closed and the outputs of live ones that were unused for so many days; then, while
        there are too many bytes, the longest unused, but nothing that was used in the last 24 hours."""
        ...

    def free(self) -> int | None:
        """Bytes that may still be written, or None if that is unknown."""
        ...

    def close(self) -> None:
        """Close the shelves opened here and remove what is not to be kept. The store may be used again."""
        ...
