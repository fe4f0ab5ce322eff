"""A spool: memory while small, the store when not, measured and hashed as it flows, honest about what did not fit."""

import hashlib

import pytest

from overspill import handles
from overspill.errors import StoreError
from overspill.store.memory import MemoryStore
from overspill.store.protocols import Shelf
from overspill.store.spool import MEMORY, Spool


@pytest.fixture
def shelf() -> Shelf:
    return MemoryStore().open_shelf(handles.new())


def stored(shelf: Shelf, id: str) -> bytes:
    reader = shelf.open(id)
    return reader.read(0, reader.size)


def test_small_text_waits_in_memory_and_is_stored_when_sealed(shelf: Shelf):
    spool = Spool(shelf, handles.new())
    spool.add(b"one\n")
    spool.add(b"two\n")
    assert spool.in_memory
    assert spool.read(2, 6) == b"e\ntw"
    sealed = spool.seal()
    assert (sealed.size.bytes, sealed.size.lines, sealed.missing) == (8, 2, "")
    assert sealed.sha256 == hashlib.sha256(b"one\ntwo\n").hexdigest()
    assert stored(shelf, spool.id) == b"one\ntwo\n"


def test_reading_what_is_sealed_finds_no_fault_with_it(shelf: Shelf):
    spool = Spool(shelf, handles.new())
    spool.add(b"one\n")
    spool.seal()
    assert spool.read(0, 3) == b"one"
    assert spool.failure == ""


def test_a_long_text_goes_to_the_store_while_it_arrives(shelf: Shelf):
    text = "0123456789abcdé\n" * (MEMORY // 8)
    spool = Spool(shelf, handles.new())
    spool.add_text(text)
    assert not spool.in_memory
    assert spool.read(0, 10) == b"0123456789"
    sealed = spool.seal()
    data = text.encode()
    assert (sealed.size.bytes, sealed.size.chars) == (len(data), len(text))
    assert sealed.sha256 == hashlib.sha256(data).hexdigest()
    assert stored(shelf, spool.id) == data


def test_a_flush_makes_everything_so_far_readable(shelf: Shelf):
    spool = Spool(shelf, handles.new())
    spool.add(b"so far")
    spool.flush()
    assert stored(shelf, spool.id) == b"so far"
    spool.add(b", and on")
    assert spool.read(0, 99) == b"so far, and on"


def test_what_is_over_the_limit_is_counted_and_not_stored(shelf: Shelf):
    spool = Spool(shelf, handles.new(), limit=7)
    spool.add("abc€€".encode())
    spool.add(b"more")
    sealed = spool.seal()
    assert spool.total == 13
    assert stored(shelf, spool.id) == "abc€".encode()
    assert sealed.size.bytes == 6
    assert sealed.missing == "one output may have at most 7 bytes (truncation.maxArtifactSize)."
    assert sealed.sha256 == hashlib.sha256("abc€".encode()).hexdigest()


def test_when_the_store_is_full_the_part_that_fits_is_stored_and_measured():
    shelf = MemoryStore(run_bytes=MEMORY + 5).open_shelf(handles.new())
    spool = Spool(shelf, handles.new())
    spool.add_text("line\n" * MEMORY)
    sealed = spool.seal()
    assert spool.total == 5 * MEMORY
    assert sealed.size.bytes == MEMORY + 5
    assert sealed.missing
    data = ("line\n" * MEMORY).encode()[: MEMORY + 5]
    assert sealed.sha256 == hashlib.sha256(data).hexdigest()
    assert stored(shelf, spool.id) == data


@pytest.mark.parametrize("run_bytes", [MEMORY, 7], ids=["with room", "in a full store"])
def test_a_hash_that_was_read_early_changes_nothing_in_what_is_stored(run_bytes: int):
    shelf = MemoryStore(run_bytes=run_bytes).open_shelf(handles.new())
    spool = Spool(shelf, handles.new())
    for part in (b"one\n", b"two\n"):
        spool.add(part)
        assert spool.sha256 == hashlib.sha256(b"one\ntwo\n"[: spool.total]).hexdigest()
    assert spool.seal().sha256 == hashlib.sha256(stored(shelf, spool.id)).hexdigest()
    assert stored(shelf, spool.id) == b"one\ntwo\n"[:run_bytes]


def test_without_a_working_store_the_beginning_can_still_be_shown(shelf: Shelf):
    spool = Spool(shelf, handles.new())
    spool.add(b"precious")
    shelf.close()
    with pytest.raises(StoreError):
        spool.seal()
    assert spool.read(0, 8) == b"precious"


def test_a_discarded_spool_leaves_nothing(shelf: Shelf):
    spool = Spool(shelf, handles.new())
    spool.add(b"x")
    spool.flush()
    spool.discard()
    with pytest.raises(Exception, match="No stored output"):
        shelf.open(spool.id)
