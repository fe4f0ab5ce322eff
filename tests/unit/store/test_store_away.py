"""A shelf whose store is away for a while: what is committed stays, and one output never stops the others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from waiting import wait_until

from overspill import handles
from overspill.errors import StoreAway, StoreError
from overspill.store.away import WaitingShelf, WaitingStore
from overspill.store.memory import MemoryShelf, MemoryStore
from overspill.store.protocols import Shelf, Writer


class ShelfThatIsAway(MemoryShelf):
    """Of a store that a test can take away, and that refuses one output for good."""

    is_away = True
    refused = ""

    def create(self, id: str) -> Writer:
        if self.is_away:
            raise StoreAway("it does not answer.")
        if id == self.refused:
            raise StoreError("it is refused.")
        return super().create(id)


@pytest.fixture
def shelf() -> ShelfThatIsAway:
    store = MemoryStore()
    live = store.open_shelf(handles.new(), retention="keep")
    return ShelfThatIsAway(live._held, live._quota, store)  # pyright: ignore[reportPrivateUsage, reportArgumentType]


def commit(shelf: Shelf, data: bytes, id: str = "") -> str:
    writer = shelf.create(id := id or handles.new())
    writer.append(data)
    writer.commit()
    return id


def read(shelf: Shelf, id: str) -> bytes:
    reader = shelf.open(id)
    return reader.read(0, reader.size)


@pytest.mark.promise("nothing-lost")
def test_discarding_a_committed_output_that_waits_does_nothing(shelf: ShelfThatIsAway):
    waiting = WaitingShelf(shelf)
    writer = waiting.create(id := handles.new())
    writer.append(b"committed")
    writer.commit()
    writer.discard()
    assert read(waiting, id) == b"committed"
    shelf.is_away = False
    waiting.settle()
    assert read(shelf, id) == b"committed"


@pytest.mark.promise("nothing-lost")
def test_an_output_that_is_refused_stops_neither_the_later_ones_nor_the_journal(
    shelf: ShelfThatIsAway, caplog: pytest.LogCaptureFixture
):
    waiting = WaitingShelf(shelf)
    first, second = commit(waiting, b"first"), commit(waiting, b"second")
    with pytest.raises(StoreError, match="outputs wait to be stored"):
        waiting.append_journal(b"{}\n")
    shelf.is_away, shelf.refused = False, first
    waiting.settle()
    assert read(shelf, second) == b"second"
    waiting.append_journal(b"{}\n")
    assert read(waiting, first) == b"first"
    assert [record.message for record in caplog.records] == [
        f"{handles.handle(shelf.session, first)} is not stored, and can be read only until its session closes: it is refused."
    ]
    waiting.close()
    assert "1 outputs of session" in caplog.records[-1].message


class IdThatActs(str):
    """Acts at the moment it is put in the list of what waits."""

    act: Callable[[], None] | None = None

    def __hash__(self) -> int:
        act, self.act = self.act, None
        if act is not None:
            act()
        return super().__hash__()


@pytest.mark.promise("nothing-lost")
def test_an_output_that_comes_as_the_list_empties_is_stored_too(shelf: ShelfThatIsAway):
    """Old wake-ups are not enough: the thread that stored the first output has just ended."""
    waiting = WaitingShelf(shelf)
    before = set(threading.enumerate())
    first = commit(waiting, b"first")
    (thread,) = set(threading.enumerate()) - before
    id = IdThatActs(handles.new())
    writer = waiting.create(id)
    writer.append(b"second")

    def come_back_until_the_list_is_empty() -> None:
        shelf.is_away = False
        thread.join(60)
        shelf.is_away = True

    id.act = come_back_until_the_list_is_empty
    writer.commit()
    assert read(shelf, first) == b"first"
    shelf.is_away = False
    wait_until(lambda: str(id) in shelf._held.outputs)  # pyright: ignore[reportPrivateUsage]
    waiting.close()


class StoreThatIsAway(MemoryStore):
    url = "postgresql://localhost/outputs"
    is_away = True

    def open_shelf(self, *args: Any, **kwargs: Any) -> MemoryShelf:
        if self.is_away:
            raise StoreAway("it does not answer.")
        return super().open_shelf(*args, **kwargs)


@pytest.mark.promise("nothing-lost")
def test_what_a_session_had_before_its_store_answered_for_the_first_time_is_stored_too():
    store, told = StoreThatIsAway(), list[str]()
    waiting = WaitingStore(store, told.append).open_shelf(session := handles.new(), retention="keep")
    assert isinstance(waiting, WaitingShelf)
    waiting.append_journal(b"{}\n")
    id = commit(waiting, b"early")
    assert read(waiting, id) == b"early"
    assert list(waiting.journal())[1:] == [b"{}\n"]
    assert store.shelves() == []
    store.is_away = False
    wait_until(lambda: bool(store.shelves()))
    waiting.settle()
    assert read(store.read_shelf(session), id) == b"early"
    waiting.append_journal(b"[]\n")
    assert list(store.read_shelf(session).journal())[1:] == [b"{}\n", b"[]\n"]
    assert [line.split(".")[0] for line in told] == [
        "Nothing can be stored, so large results are cut",
        "The store works again, and large results are stored",
    ]
    waiting.close()
