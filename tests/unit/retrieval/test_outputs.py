"""Stored outputs: found by either spelling, only by their session, read exactly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread

import pytest

from overspill import handles
from overspill.errors import BadRequest, ExpiredHandle, MalformedHandle, UnknownHandle
from overspill.gate.kept import KnownOutputs
from overspill.record.ledger import Ledger
from overspill.retrieval.outputs import StoredOutputs
from overspill.store.files.store import FileStore
from overspill.store.protocols import Shelf
from overspill.types import Kept, Size


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    store = FileStore(tmp_path)
    yield store
    store.close()


@pytest.fixture
def shelf(store: FileStore) -> Shelf:
    return store.open_shelf(handles.new())


def stored(shelf: Shelf, data: bytes) -> Kept:
    writer = shelf.create(id := handles.new())
    writer.append(data)
    writer.commit()
    return Kept(shelf.session, id, "tool", "size_cap", Size(len(data), 0, 0, 0), "", 0)


def known(*outputs: Kept) -> KnownOutputs:
    known = KnownOutputs(Ledger("", lambda _: None))
    for kept in outputs:
        known.kept.add(kept)
    return known


@pytest.fixture
def kept(shelf: Shelf) -> Kept:
    return stored(shelf, b'{"a": [1, 2]}\r\nsecond \xc3\xa9\rthird')


@pytest.fixture
def outputs(shelf: Shelf, kept: Kept) -> Iterator[StoredOutputs]:
    outputs = StoredOutputs(shelf, known(kept))
    yield outputs
    outputs.close()


def test_an_output_is_found_by_every_spelling(outputs: StoredOutputs, kept: Kept):
    for spelling in (kept.handle, kept.artifact_id, kept.id):
        assert outputs.find(spelling) is kept
        assert outputs.file_id(spelling) == kept.id


def test_an_output_is_read_by_bytes_lines_and_as_a_whole(outputs: StoredOutputs, kept: Kept):
    with outputs.open(kept.handle) as found:
        assert found.kept is kept
        assert found.bytes() == b'{"a": [1, 2]}\r\nsecond \xc3\xa9\rthird'
        assert found.bytes(0, 5) == b'{"a":'
        assert found.bytes(27) == b"ird"
        assert found.text() == '{"a": [1, 2]}\r\nsecond é\rthird'
        assert (found.lines(2, 2), found.lines(2), found.lines()) == ("second é\r", "second é\rthird", found.text())
        with pytest.raises(BadRequest):
            found.lines(9)


def test_an_output_is_searched(outputs: StoredOutputs, kept: Kept):
    with outputs.open(kept.handle) as found:
        assert found.grep("SEC.nd", ignore_case=True).text == "2:second é"
        assert found.grep("c.nd", literal=True).hits == 0
        assert found.grep("third", context=1).text == "2-second é\n3:third"


def test_an_output_is_queried(shelf: Shelf):
    kept = stored(shelf, b'{"a": [1, {"b": "x"}]}')
    with StoredOutputs(shelf, known(kept)).open(kept.handle) as found:
        assert (found.query("/a/1/b").text, found.query("a[0]").text) == ("x", "1")


def test_a_closed_output_cannot_be_read(outputs: StoredOutputs, kept: Kept):
    found = outputs.open(kept.handle)
    found.close()
    found.close()
    with pytest.raises(Exception, match="The reader is closed"):
        found.bytes()


@pytest.mark.parametrize(
    "spelling",
    [
        "",
        "x9",
        "../../etc/passwd",
        "/etc/passwd",
        "session-a/b",
        "art_1_2",
        "%2e%2e/x",
        "\0",
        "a" * 10_000,
    ],
)
def test_what_is_no_handle_is_malformed(outputs: StoredOutputs, spelling: str):
    for look in (outputs.find, outputs.open, outputs.recent, outputs.file_id):
        with pytest.raises(MalformedHandle):
            look(spelling)


@pytest.mark.promise("nobody-elses")
def test_an_id_of_another_session_is_as_unknown_as_one_that_never_was(
    shelf: Shelf, outputs: StoredOutputs, kept: Kept, tmp_path: Path
):
    other = FileStore(tmp_path).open_shelf(handles.new())
    theirs = stored(other, b"theirs")
    never = handles.new()
    for spelling in (
        theirs.handle,
        theirs.artifact_id,
        theirs.id,
        handles.handle(shelf.session, never),
        handles.artifact_id(never),
    ):
        for look in (outputs.find, outputs.open, outputs.recent):
            with pytest.raises(UnknownHandle):
                look(spelling)
    with pytest.raises(UnknownHandle):
        outputs.open(handles.handle(theirs.session, kept.id))
    assert StoredOutputs(other, known(theirs)).open(theirs.handle).text() == "theirs"
    other.close()


def test_an_output_that_was_removed_has_expired(store: FileStore, shelf: Shelf, outputs: StoredOutputs, kept: Kept):
    store.empty_shelf(shelf.session)
    for look in (outputs.open, outputs.recent):
        with pytest.raises(ExpiredHandle, match=r"has expired and was removed\. Call tool again\."):
            look(kept.handle)


def test_an_output_that_was_read_just_now_has_expired_too_once_it_is_removed(
    store: FileStore, shelf: Shelf, outputs: StoredOutputs, kept: Kept
):
    reading = outputs.recent(kept.handle)
    store.empty_shelf(shelf.session)
    with pytest.raises(ExpiredHandle):
        outputs.recent(kept.handle)
    assert reading.bytes(0, 6) == b'{"a": '


def test_an_output_read_again_is_opened_once(outputs: StoredOutputs, kept: Kept):
    assert outputs.recent(kept.handle) is outputs.recent(kept.artifact_id)


def test_an_output_that_is_being_read_outlives_its_place_among_the_recent_ones(shelf: Shelf):
    all_kept = [stored(shelf, b"%d" % number) for number in range(40)]
    outputs = StoredOutputs(shelf, known(*all_kept))
    held = [outputs.recent(kept.handle) for kept in all_kept]
    assert [each.bytes() for each in held] == [b"%d" % number for number in range(40)]
    assert outputs.recent(all_kept[0].handle) is not held[0]
    outputs.close()


def test_more_outputs_than_are_held_open_can_be_read_from_many_threads(shelf: Shelf):
    all_kept = [stored(shelf, b"%d" % number * 1000) for number in range(40)]
    outputs = StoredOutputs(shelf, known(*all_kept))
    barrier, wrong = Barrier(8), []

    def look(offset: int) -> None:
        barrier.wait(timeout=30)
        for step in range(200):
            number = (step * 7 + offset) % 40
            if outputs.recent(all_kept[number].handle).bytes() != b"%d" % number * 1000:
                wrong.append(number)

    threads = [Thread(target=look, args=(5 * index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert wrong == []
    outputs.close()
