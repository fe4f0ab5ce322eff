"""Journals that were cut off, kept sessions and their limits, and what the rules decide."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from overspill import handles
from overspill.errors import StoreError, StoreFull
from overspill.store.files import layout
from overspill.store.files.layout import to_store_error
from overspill.store.files.store import FileStore
from overspill.store.keep import KeptItem, expired_items
from overspill.store.protocols import KeepLimits, ShelfLabel

DAY = 86_400
ROOM = "What was stored before is still there; free space or set another storeDir."


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    store = FileStore(tmp_path)
    yield store
    store.close()


def journal_of(store: FileStore, session: str) -> Path:
    (found,) = store.root.glob(f"overspill-*/session-{session}/journal.jsonl")
    return found


def kept(store: FileStore, name: str = "", data: bytes = b"") -> str:
    shelf = store.open_shelf(handles.new(), name=name, retention="keep")
    writer = shelf.create(handles.new())
    writer.append(data)
    writer.commit()
    shelf.close()
    return shelf.session


def aged(store: FileStore, session: str, days: float) -> None:
    for path in journal_of(store, session).parent.iterdir():
        then = path.stat().st_mtime - days * DAY
        os.utime(path, (then, then))


def test_a_torn_last_line_is_left_out_and_the_next_starts_on_a_new_line(store):
    session = kept(store, "torn")
    with journal_of(store, session).open("ab") as file:
        file.write(b'{"n":1}\n{"n":')
    assert list(store.read_shelf(session).journal())[1:] == [b'{"n":1}\n']
    shelf = store.open_shelf(handles.new(), name="torn")
    assert list(shelf.journal())[1:] == [b'{"n":1}\n']
    shelf.append_journal(b'{"n":2}\n')
    assert list(shelf.journal())[1:] == [b'{"n":1}\n', b'{"n":2}\n']
    assert journal_of(store, session).read_bytes().endswith(b'\n{"n":1}\n{"n":2}\n')


def test_a_torn_line_longer_than_a_block_is_found(store):
    session = kept(store, "long")
    with journal_of(store, session).open("ab") as file:
        file.write(b"x" * 200_000)
    shelf = store.open_shelf(handles.new(), name="long")
    shelf.append_journal(b"{}\n")
    assert list(shelf.journal())[1:] == [b"{}\n"]


@pytest.mark.parametrize("first", [b"", b'{"event":"sess'])
def test_a_shelf_whose_first_line_was_never_finished_is_not_kept(store, first):
    session = kept(store, "lost")
    journal_of(store, session).write_bytes(first)
    assert store.shelves() == [ShelfLabel(session, live=False)]
    store.close()
    assert store.shelves() == []


@pytest.mark.parametrize("first", [b"not json\n", b'{"event":"other"}\n', b'{"event":"session","session":"\xff"}\n'])
def test_a_shelf_whose_first_line_cannot_be_parsed_is_kept(store, first):
    session = kept(store, "lost")
    journal_of(store, session).write_bytes(first)
    store.close()
    assert store.shelves() == [ShelfLabel(session, live=False, retention="keep")]
    store.remove_shelf(session)
    assert store.shelves() == []


def test_a_shelf_without_a_lock_or_journal_is_not_live(store):
    session = kept(store)
    directory = journal_of(store, session).parent
    (directory / "lock").unlink()
    (directory / "journal.jsonl").unlink()
    assert store.shelves() == [ShelfLabel(session, live=False)]


def test_a_later_store_finds_a_kept_session_and_continues_it(store):
    session = kept(store, "again", b"x" * 100)
    store.close()
    later = FileStore(store.root, run_bytes=1000)
    shelf = later.open_shelf(handles.new(), name="again")
    assert shelf.session == session
    assert later.free() == 1000
    assert later.empty_shelf(session) == 1
    assert later.free() == 1000
    shelf.close()
    runs = [path for path in store.root.iterdir() if layout.is_run(path.name)]
    assert runs == [journal_of(store, session).parent.parent]


def test_an_output_cut_off_by_the_death_of_a_process_can_be_read(store):
    session = kept(store, "died")
    part = journal_of(store, session).parent / f"{(id := handles.new())}.part"
    part.write_bytes(b"as far as it came")
    shelf = store.open_shelf(handles.new(), name="died")
    assert shelf.open(id).read(0, 99) == b"as far as it came"


def test_closed_sessions_expire_by_age_then_by_size_and_never_while_live(store):
    old, live, older, young = (kept(store, name, b"x" * 1000) for name in ("old", "live", "older", "young"))
    for session, days in ((old, 3), (live, 9), (older, 5), (young, 0.9)):
        aged(store, session, days)
    store.open_shelf(handles.new(), name="live")
    aged(store, live, 9)
    assert store.expire(KeepLimits(4, 100_000)).sessions == [older]
    assert store.expire(KeepLimits(4, 2000)).sessions == [old]
    assert store.expire(KeepLimits(4, 10)).sessions == []
    assert {label.session for label in store.shelves()} == {live, young}


def test_opening_a_kept_session_again_counts_as_using_it(store):
    session = kept(store, "used")
    aged(store, session, 30)
    store.open_shelf(handles.new(), name="used").close()
    assert store.expire(KeepLimits(1, 1 << 30)).sessions == []
    aged(store, session, 30)
    assert store.expire(KeepLimits(1, 1 << 30)).sessions == [session]


def test_a_run_is_removed_with_its_last_kept_session(store):
    first, second = kept(store, data=b"x" * 1000), kept(store, data=b"x" * 1000)
    store.close()
    later = FileStore(store.root)
    later.remove_shelf(first)
    assert [label.session for label in later.shelves()] == [second]
    assert later.expire(KeepLimits(0, 0)).sessions == [second]
    assert list(store.root.iterdir()) == []


def test_limits_by_age_remove_everything_too_old_and_by_size_the_oldest_until_the_rest_fits():
    old, older, young = KeptItem("a", "", 2 * DAY, 100), KeptItem("b", "1", 1 * DAY, 100), KeptItem("c", "", 3 * DAY, 100)
    now, items = 3.5 * DAY, [old, older, young]
    assert expired_items(items, {"": 300}, KeepLimits(7, 300), now=now) == []
    assert expired_items(items, {"": 300}, KeepLimits(7, 299), now=now) == [older]
    assert expired_items(items, {"": 300}, KeepLimits(7, 150), now=now) == [older, old]
    assert expired_items(items, {"": 300}, KeepLimits(7, 0), now=now) == [older, old]
    assert expired_items(items, {"": 300}, KeepLimits(2, 300), now=now) == [older]
    assert expired_items(items, {"": 300}, KeepLimits(0, 300), now=now) == [older, old, young]


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (errno.ENOSPC, StoreFull, f"the disk is full. {ROOM}"),
        (errno.EDQUOT, StoreFull, f"the disk quota is used up. {ROOM}"),
        (errno.EROFS, StoreError, "the file system is read-only. Set storeDir to a place you can write to."),
        (errno.ENOENT, StoreError, "the file or its directory was removed by another program. Open a new session."),
        (errno.EACCES, StoreError, "Permission denied. Check storeDir, or set another."),
    ],
)
def test_a_failure_says_what_happened_and_what_to_do(code, kind, reason):
    found = to_store_error("store x", OSError(code, os.strerror(code)))
    assert (type(found), str(found)) == (kind, f"Could not store x: {reason}")


def test_what_one_family_keeps_removes_nothing_of_another():
    now = 100 * DAY
    ann, bob = (KeptItem(handles.new(), "", now - 3 * DAY, 200, family) for family in ("ann", "bob"))
    kept = {"ann": 200, "bob": 900}
    assert expired_items([ann, bob], kept, KeepLimits(7, 300), now=now) == [bob]
    assert expired_items([ann, bob], kept, KeepLimits(7, 100), now=now, family="ann") == [ann]
    assert {item.family for item in expired_items([ann, bob], kept, KeepLimits(7, 100), now=now)} == {"ann", "bob"}
    assert {item.family for item in expired_items([ann, bob], kept, KeepLimits(2, 9_000), now=now)} == {"ann", "bob"}
