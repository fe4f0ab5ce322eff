"""What every backend of the store promises."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import msgspec
import pytest
from every_store import EVERY_STORE, MAKERS, Make
from waiting import wait_until

from overspill import handles
from overspill.errors import BadRequest, MalformedHandle, NameInUse, StoreError, StoreFull, UnknownHandle
from overspill.store.protocols import KeepLimits, Retention, ShelfLabel, Store


@pytest.fixture(params=EVERY_STORE)
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    made: list[Store] = []
    of_kind = MAKERS[request.param](request)

    def new(**options: int) -> Store:
        made.append(of_kind(**options))
        return made[-1]

    yield new
    for store in made:
        store.close()


@pytest.fixture
def store(make: Make) -> Store:
    return make()


def stored(shelf, data: bytes) -> str:
    id = handles.new()
    writer = shelf.create(id)
    writer.append(data)
    writer.commit()
    return id


def test_what_was_appended_reads_back_in_order(store):
    shelf = store.open_shelf(handles.new())
    id = handles.new()
    writer = shelf.create(id)
    writer.append(b"one ")
    writer.append(memoryview(b"two "))
    writer.append(b"")
    writer.append(memoryview(b"t h r e e ")[::2])
    writer.commit()
    reader = shelf.open(id)
    assert writer.size == reader.size == 13
    assert reader.read(0, 100) == b"one two three"
    assert bytes(reader.buffer()) == b"one two three"


def test_a_view_of_numbers_is_stored_as_its_bytes(store):
    shelf = store.open_shelf(handles.new())
    writer = shelf.create(id := handles.new())
    writer.append(memoryview(bytes(range(8))).cast("I"))
    writer.commit()
    assert shelf.open(id).read(0, 8) == bytes(range(8))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 10, b"0123456789"),
        (3, 5, b"34"),
        (8, 99, b"89"),
        (-5, 2, b"01"),
        (5, 5, b""),
        (7, 2, b""),
        (10, 20, b""),
        (-9, -3, b""),
    ],
)
def test_a_range_is_clipped_to_what_there_is(store, start, end, expected):
    shelf = store.open_shelf(handles.new())
    reader = shelf.open(stored(shelf, b"0123456789"))
    assert reader.read(start, end) == expected


def test_an_empty_output_has_an_empty_buffer(store):
    shelf = store.open_shelf(handles.new())
    reader = shelf.open(stored(shelf, b""))
    assert (reader.size, reader.read(0, 1), bytes(reader.buffer())) == (0, b"", b"")


def test_an_output_still_being_written_is_readable_as_far_as_it_goes(store):
    shelf = store.open_shelf(handles.new())
    writer = shelf.create(id := handles.new())
    reader = shelf.open(id)
    assert bytes(reader.buffer()) == b""
    writer.append(b"first")
    view = reader.buffer()
    assert (reader.size, reader.read(0, 99), bytes(view)) == (5, b"first", b"first")
    writer.append(b" second")
    assert bytes(reader.buffer()) == b"first second"
    writer.commit()
    assert (reader.read(0, 99), bytes(view)) == (b"first second", b"first")


def test_a_reader_stays_valid_when_its_output_is_removed(store):
    shelf = store.open_shelf(handles.new())
    id = stored(shelf, b"still here")
    reader = shelf.open(id)
    store.empty_shelf(shelf.session)
    assert reader.read(0, 99) == b"still here"
    with pytest.raises(UnknownHandle, match=re.escape(handles.handle(shelf.session, id))):
        shelf.open(id)


def test_closing_a_reader_leaves_its_views_alone_and_ends_its_calls(store):
    shelf = store.open_shelf(handles.new())
    reader = shelf.open(stored(shelf, b"looked at"))
    view = reader.buffer()[3:]
    reader.close()
    reader.close()
    assert bytes(view) == b"ked at"
    for call in (lambda: reader.size, lambda: reader.read(0, 1), reader.buffer):
        with pytest.raises(StoreError, match="The reader is closed and takes no more calls"):
            call()


def test_a_buffer_cannot_be_written_to(store):
    shelf = store.open_shelf(handles.new())
    assert shelf.open(stored(shelf, b"truth")).buffer().readonly


def test_a_committed_output_takes_no_more_and_cannot_be_discarded(store):
    shelf = store.open_shelf(handles.new())
    writer = shelf.create(id := handles.new())
    writer.append(b"whole")
    writer.commit()
    writer.commit()
    writer.discard()
    with pytest.raises(StoreError, match="The output is closed and takes no more calls"):
        writer.append(b"more")
    assert shelf.open(id).read(0, 99) == b"whole"


def test_a_discarded_output_leaves_no_trace(store):
    shelf = store.open_shelf(handles.new())
    writer = shelf.create(id := handles.new())
    writer.append(b"never mind")
    writer.discard()
    writer.discard()
    with pytest.raises(UnknownHandle):
        shelf.open(id)
    with pytest.raises(StoreError, match="The output is closed"):
        writer.commit()
    stored_again = shelf.create(id)
    stored_again.append(b"new")
    writer.discard()
    assert shelf.open(id).read(0, 99) == b"new"


def test_nothing_is_overwritten(store):
    shelf = store.open_shelf(handles.new())
    committed, running = stored(shelf, b"first"), handles.new()
    shelf.create(running)
    for id in (committed, running):
        with pytest.raises(StoreError, match=r"is already stored, and nothing is ever overwritten\. Take a new id"):
            shelf.create(id).append(b"second")  # a store elsewhere may find out with the first bytes
    assert shelf.open(committed).read(0, 99) == b"first"


@pytest.mark.parametrize(
    "trick",
    [
        "",
        ".",
        "..",
        "../x",
        "/etc/passwd",
        "lock",
        "journal.jsonl",
        "a\0b",
        "%2e%2e",
        "é" * 300,
        "019A8C5E-0000-7000-8000-00000000ABCD",
        "019a8c5e-0000-7000-8000-00000000abcd\n",
    ],
)
def test_an_id_that_is_no_uuid_is_malformed(store, trick):
    shelf = store.open_shelf(handles.new())
    for call in (shelf.create, shelf.open, store.open_shelf, store.read_shelf, store.remove_shelf):
        with pytest.raises(MalformedHandle):
            call(trick)


def test_the_journal_begins_with_what_the_shelf_is_and_keeps_its_order(store):
    session = handles.new()
    shelf = store.open_shelf(session, name="nightly", retention="keep")
    shelf.append_journal(b'{"n":1}\n')
    shelf.append_journal(b'{"n":2}\n')
    first, *rest = shelf.journal()
    opening = msgspec.json.decode(first)
    assert rest == [b'{"n":1}\n', b'{"n":2}\n']
    assert isinstance(opening.pop("t"), int)
    assert opening == {"event": "session", "session": session, "name": "nightly", "retention": "keep"}


@pytest.mark.parametrize("lines", [b"", b"no end", b"one\nand a half"])
def test_a_journal_takes_whole_lines_only(store, lines):
    shelf = store.open_shelf(handles.new())
    with pytest.raises(StoreError, match="A journal holds whole lines"):
        shelf.append_journal(lines)
    assert len(list(shelf.journal())) == 1


def test_a_journal_takes_several_lines_at_once(store):
    shelf = store.open_shelf(handles.new())
    shelf.append_journal(b"{}\n[]\n")
    assert list(shelf.journal())[1:] == [b"{}\n", b"[]\n"]


def test_a_journal_is_read_on_from_where_it_was_read_to(store):
    shelf = store.open_shelf(handles.new())
    reader = store.read_shelf(shelf.session)
    for number in range(5):
        shelf.append_journal(b'{"n":%d}\n' % number)
    lines, position = reader.read_on(0)
    assert lines[-5:] == [b'{"n":%d}\n' % number for number in range(5)]
    for number in range(5, 70):  # an object store puts 64 together
        shelf.append_journal(b'{"n":%d}\n' % number)
        lines, position = reader.read_on(position)
        assert lines[-1] == b'{"n":%d}\n' % number
    assert len(lines) <= 2


def test_journal_lines_of_many_threads_do_not_mix(store):
    shelf = store.open_shelf(handles.new())
    lines = [b"%d:%s\n" % (n, b"x" * n) for n in range(200)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(shelf.append_journal, lines))
    assert sorted(list(shelf.journal())[1:]) == sorted(lines)


def test_many_outputs_are_written_at_once(store):
    shelf = store.open_shelf(handles.new())
    start = threading.Barrier(8, timeout=20)

    def write(n: int) -> str:
        writer = shelf.create(id := handles.new())
        start.wait()
        for piece in range(50):
            writer.append(b"%d-%d;" % (n, piece))
        writer.commit()
        return id

    with ThreadPoolExecutor(8) as pool:
        for n, id in enumerate(pool.map(write, range(8))):
            assert shelf.open(id).read(0, 9999) == b"".join(b"%d-%d;" % (n, piece) for piece in range(50))


def test_a_session_leaves_nothing_when_it_closes(store):
    shelf = store.open_shelf(session := handles.new(), retention="session")
    stored(shelf, b"gone")
    assert store.shelves() == [ShelfLabel(session, live=True, retention="session")]
    shelf.close()
    shelf.close()
    assert store.shelves() == []
    with pytest.raises(UnknownHandle, match=f"session-{session}"):
        store.read_shelf(session)


@pytest.mark.parametrize(("retention", "after"), [("process", False), ("keep", True)])
def test_what_is_retained_outlives_its_session(store, retention: Retention, after: bool):
    shelf = store.open_shelf(session := handles.new(), retention=retention)
    id = stored(shelf, b"retained")
    shelf.close()
    assert store.shelves() == [ShelfLabel(session, live=False, retention=retention)]
    assert store.read_shelf(session).open(id).read(0, 99) == b"retained"
    store.close()
    assert [label.session for label in store.shelves()] == ([session] if after else [])


def test_closing_a_store_closes_its_shelves_and_it_can_be_used_again(store):
    shelf = store.open_shelf(handles.new())
    store.close()
    store.close()
    with pytest.raises(StoreError):
        shelf.create(handles.new())
    store.open_shelf(session := handles.new())
    assert [label.session for label in store.shelves()] == [session]


def test_a_closed_shelf_takes_no_more_calls(store):
    shelf = store.open_shelf(handles.new(), retention="keep")
    id = stored(shelf, b"kept")
    writer = shelf.create(unfinished := handles.new())
    writer.append(b"half")
    shelf.close()
    for call in (
        lambda: shelf.create(handles.new()),
        lambda: shelf.open(id),
        lambda: shelf.append_journal(b"{}\n"),
        lambda: list(shelf.journal()),
        lambda: writer.append(b"more"),
        writer.commit,
    ):
        with pytest.raises(StoreError, match="closed"):
            call()
    writer.discard()
    assert store.read_shelf(shelf.session).open(unfinished).read(0, 9) == b"half"


def test_a_name_opens_a_kept_session_again_with_all_it_has(store):
    shelf = store.open_shelf(session := handles.new(), name="research – α", retention="keep")
    id = stored(shelf, b"from last week")
    shelf.append_journal(b'{"n":1}\n')
    shelf.close()
    again = store.open_shelf(handles.new(), name="research – α", retention="session")
    again.append_journal(b'{"n":2}\n')
    assert again.session == session
    assert again.open(id).read(0, 99) == b"from last week"
    assert list(again.journal())[1:] == [b'{"n":1}\n', b'{"n":2}\n']
    again.close()
    assert store.shelves() == [ShelfLabel(session, live=False, name="research – α", retention="keep")]


@pytest.mark.parametrize("retention", ["session", "process", "keep"])
def test_a_name_belongs_to_one_live_session(store, retention: Retention):
    first = store.open_shelf(handles.new(), name="mine", retention=retention)
    with pytest.raises(NameInUse, match=r"The session 'mine' is open elsewhere\. Close it there first, or choose another name\."):
        store.open_shelf(handles.new(), name="mine", retention="keep")
    other = store.open_shelf(handles.new(), name="yours", retention="keep")
    first.close()
    again = store.open_shelf(handles.new(), name="mine", retention="keep")
    assert (again.session == first.session) == (retention == "keep")
    assert other.session != again.session


@pytest.mark.parametrize("name", ["x" * 201, "two\nlines", "bell\a", "\ud800", "tab\t"])
def test_a_name_has_at_most_200_printable_characters(store, name):
    with pytest.raises(BadRequest, match="cannot name a session: a name has 1 to 200 printable characters"):
        store.open_shelf(handles.new(), name=name)
    assert store.shelves() == []


def test_the_longest_name_can_be_found_again(store):
    shelf = store.open_shelf(handles.new(), name="\U0001f600" * 200, retention="keep")
    shelf.close()
    assert store.open_shelf(handles.new(), name="\U0001f600" * 200, retention="keep").session == shelf.session


def test_a_session_id_is_given_out_once(store):
    store.open_shelf(session := handles.new())
    with pytest.raises(StoreError, match="already"):
        store.open_shelf(session)
    assert [label.session for label in store.shelves()] == [session]


def test_a_shelf_opened_for_reading_sees_what_is_written_and_writes_nothing(store):
    live = store.open_shelf(handles.new(), name="watched")
    shelf = store.read_shelf(live.session)
    id = stored(live, b"news")
    live.append_journal(b"{}\n")
    assert shelf.session == live.session
    assert shelf.open(id).read(0, 99) == b"news"
    assert len(list(shelf.journal())) == 2
    for call in (lambda: shelf.create(handles.new()), lambda: shelf.append_journal(b"{}\n")):
        with pytest.raises(StoreError, match=f"Session {live.session} was opened for reading only"):
            call()
    shelf.close()
    assert [label.live for label in store.shelves()] == [True]
    with pytest.raises(StoreError, match="closed"):
        shelf.open(id)
    with pytest.raises(StoreError, match="closed"):
        list(shelf.journal())


def test_a_removed_shelf_is_gone_for_its_readers_too(store):
    live = store.open_shelf(handles.new())
    id = stored(live, b"short-lived")
    shelf = store.read_shelf(live.session)
    live.close()
    with pytest.raises(UnknownHandle):
        shelf.open(id)


def test_a_shelf_can_be_removed_once_it_is_closed(store):
    shelf = store.open_shelf(session := handles.new(), retention="keep")
    with pytest.raises(StoreError, match=f"Session {session} is live and cannot be removed. Close it first."):
        store.remove_shelf(session)
    shelf.close()
    store.remove_shelf(session)
    assert store.shelves() == []
    with pytest.raises(UnknownHandle):
        store.remove_shelf(session)


def test_shelves_are_listed_oldest_first(store):
    sessions = sorted(handles.new() for _ in range(3))
    for session in reversed(sessions):
        store.open_shelf(session)
    assert [label.session for label in store.shelves()] == sessions


def test_shelves_are_listed_in_pages_that_leave_none_out_and_show_none_twice(store):
    sessions = sorted(handles.new() for _ in range(7))
    for session in sessions:
        store.open_shelf(session, name=f"ann/{session}", retention="keep").close()
    for family in ("", "ann"):
        pages = [[label.session for label in store.shelves(family=family, most=3)]]
        while pages[-1]:
            pages.append([label.session for label in store.shelves(family=family, after=pages[-1][-1], most=3)])
        assert pages == [sessions[:3], sessions[3:6], sessions[6:], []]
        assert [label.session for label in store.shelves(family=family, after=sessions[4])] == sessions[5:]
        assert store.shelves(family=family, most=0) == []


FAMILY_NAMES = [
    "ann",
    "ann/one",
    "ann/one/two",
    "ann/job",
    "an",
    "anna/one",
    "Ann/one",
    "ann-2",
    "",
    "bob/ann",
    "ann/%",
    "ann//x",
]


@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("ann", ["ann", "ann/one", "ann/job", "ann/%"]),
        ("ann/one", ["ann/one", "ann/one/two"]),
        ("ann/", ["ann//x"]),
        ("an", ["an"]),
        ("ann%", []),
        ("", FAMILY_NAMES),
    ],
)
def test_a_family_lists_its_own_sessions_and_no_others(store, family, names):
    for name in FAMILY_NAMES:
        store.open_shelf(handles.new(), name=name, retention="keep").close()
    found = store.shelves(family=family)
    assert sorted(label.name for label in found) == sorted(names)
    assert all(label == store.label(label.session) for label in found)


def test_a_family_lists_what_another_store_object_opened_and_no_longer_what_it_removed(make):
    store, elsewhere = make(), make()
    if store.url == "memory:":  # which only one object can see
        elsewhere = store
    assert store.shelves(family="ann") == []
    session = handles.new()
    kept = elsewhere.open_shelf(session, name=f"ann/{session}", retention="keep")
    stays = elsewhere.open_shelf(handles.new(), name="ann/stays", retention="process")
    assert {(label.session, label.live) for label in store.shelves(family="ann")} == {(session, True), (stays.session, True)}
    assert [label.session for label in store.shelves(family=f"ann/{session}")] == [session]
    kept.close()
    assert ShelfLabel(session, live=False, name=f"ann/{session}", retention="keep") in store.shelves(family="ann")
    elsewhere.remove_shelf(session)
    assert [label.session for label in store.shelves(family="ann")] == [stays.session]
    assert store.shelves(family=f"ann/{session}") == []
    stays.close()
    elsewhere.close()
    assert store.shelves(family="ann") == []


def test_over_the_quota_what_fits_is_stored_and_can_be_committed(make):
    store = make(run_bytes=10)
    shelf = store.open_shelf(handles.new())
    stored(shelf, b"1234")
    writer = shelf.create(id := handles.new())
    writer.append(b"abc")
    with pytest.raises(StoreFull, match=r"The quota of 10 bytes for this run is used up: 4 bytes could not be stored\."):
        writer.append(b"defghij")
    assert (writer.size, store.free()) == (6, 0)
    with pytest.raises(StoreFull, match="1 bytes could not be stored"):
        writer.append(b"k")
    writer.commit()
    assert shelf.open(id).read(0, 99) == b"abcdef"


def test_the_quota_counts_all_shelves_and_gets_back_what_is_removed(make):
    store = make(run_bytes=100)
    first, second, third = (store.open_shelf(handles.new(), retention=kind) for kind in ("session", "process", "keep"))
    stored(first, b"x" * 10)
    stored(second, b"x" * 20)
    stored(third, b"x" * 5)
    discarded = third.create(handles.new())
    discarded.append(b"x" * 40)
    assert store.free() == 25
    discarded.discard()
    assert store.free() == 65
    store.empty_shelf(second.session)
    assert store.free() == 85
    stored(second, b"x" * 2)
    first.close()
    assert store.free() == 93
    second.close()
    assert store.free() == 93
    store.remove_shelf(second.session)
    assert store.free() == 95


def test_a_journal_is_written_even_when_the_quota_is_used_up(make):
    shelf = make(run_bytes=0).open_shelf(handles.new())
    shelf.append_journal(b'{"event":"quota"}\n')
    assert list(shelf.journal())[1:] == [b'{"event":"quota"}\n']


def test_by_age_the_keep_limits_remove_closed_kept_shelves_and_outputs_of_live_ones(store):
    kept, live, process = (store.open_shelf(handles.new(), retention=kind) for kind in ("keep", "keep", "process"))
    _, removed, _ = (stored(shelf, b"x" * 1000) for shelf in (kept, live, process))
    unfinished = live.create(running := handles.new())
    unfinished.append(b"half")
    kept.close()
    process.close()
    assert store.expire(KeepLimits(1, 1_000_000)).sessions == []
    expired = store.expire(KeepLimits(0, 1_000_000))
    assert (expired.sessions, expired.outputs) == ([kept.session], [removed])
    assert {label.session for label in store.shelves()} == {live.session, process.session}
    with pytest.raises(UnknownHandle):
        live.open(removed)
    assert live.open(running).read(0, 99) == b"half"
    unfinished.commit()


def test_by_size_the_keep_limits_remove_nothing_that_was_used_today(store):
    closed, live = (store.open_shelf(handles.new(), retention="keep") for _ in range(2))
    ids = [stored(shelf, b"x" * 1000) for shelf in (closed, live)]
    closed.close()
    expired = store.expire(KeepLimits(1, 0))
    assert (expired.sessions, expired.outputs) == ([], [])
    assert expired.bytes > 2000
    assert live.open(ids[1]).size == store.read_shelf(closed.session).open(ids[0]).size == 1000


def test_what_does_not_fit_in_the_keep_limits_is_over_quota(store):
    shelf = store.open_shelf(handles.new(), retention="keep", limits=KeepLimits(7, 5000))
    first = stored(shelf, b"x" * 3000)
    writer = shelf.create(handles.new())
    with pytest.raises(StoreFull, match=r"The 5,000 bytes that may be kept \(keepBytes\) are used up: .* could not be stored"):
        writer.append(b"y" * 3000)
    assert 1500 < writer.size <= 2000
    assert shelf.open(first).size == 3000
    writer.discard()
    other = shelf.create(handles.new())
    other.append(b"z" * 1500)
    other.commit()


def test_each_family_has_its_own_limit_and_sessions_of_none_share_one(store):
    limits = KeepLimits(7, 5000)

    def keep(name: str) -> int:
        """How much of 4,000 bytes could be kept."""
        shelf = store.open_shelf(handles.new(), name=name, retention="keep", limits=limits)
        writer = shelf.create(handles.new())
        with suppress(StoreFull):
            writer.append(b"x" * 4000)
        writer.commit()
        shelf.close()
        return writer.size

    assert (keep("ann/one"), keep("bob/one"), keep("")) == (4000, 4000, 4000)
    assert max(keep("ann/two"), keep("bob/two"), keep("ann")) < 1000
    kept = store.expire(limits)
    assert kept.bytes == sum(kept.families.values())
    assert len(kept.families) == 3


def test_keep_limits_do_not_bind_a_session_that_is_not_kept(store):
    shelf = store.open_shelf(handles.new(), retention="process", limits=KeepLimits(7, 10))
    assert shelf.open(stored(shelf, b"x" * 1000)).size == 1000


def test_a_reader_knows_that_its_output_was_removed(store):
    shelf = store.open_shelf(handles.new(), retention="keep")
    reader = shelf.open(stored(shelf, b"here"))
    assert not reader.is_removed
    store.expire(KeepLimits(0, 1_000_000))
    assert reader.is_removed
    assert reader.read(0, 99) == b"here"


def test_a_read_is_the_last_use_of_an_output(store):
    shelf = store.open_shelf(session := handles.new())
    first, second = (stored(shelf, data) for data in (b"first", b"second"))
    written = shelf.last_used(second)
    assert shelf.last_used(first) <= written
    reading = store.read_shelf(session)
    wait_until(lambda: time.time() > written + 1)  # a bucket's clock has seconds
    reading.note_read(first)
    assert shelf.last_used(first) == reading.last_used(first) > written == shelf.last_used(second)
    store.empty_shelf(session)
    with pytest.raises(UnknownHandle, match=re.escape(handles.handle(session, first))):
        shelf.last_used(first)


def test_the_quota_of_a_run_gets_back_what_the_keep_limits_remove(make):
    store = make(run_bytes=1000)
    shelf = store.open_shelf(handles.new(), retention="keep", limits=KeepLimits(7, 1_000_000))
    stored(shelf, b"x" * 900)
    assert store.free() == 100
    store.expire(KeepLimits(0, 1_000_000))
    assert store.free() == 1000


def test_one_shelf_is_labelled_without_the_others(store):
    shelf = store.open_shelf(handles.new(), name="one", retention="keep")
    assert store.label(shelf.session) == ShelfLabel(shelf.session, live=True, name="one", retention="keep")
    with pytest.raises(UnknownHandle):
        store.label(handles.new())


def test_an_emptied_shelf_goes_on_without_its_outputs(store):
    shelf = store.open_shelf(handles.new())
    done, open_ = handles.new(), handles.new()
    writer = shelf.create(done)
    writer.append(b"gone soon")
    writer.commit()
    unfinished = shelf.create(open_)
    unfinished.append(b"still coming")
    assert store.empty_shelf(shelf.session) == 1
    with pytest.raises(UnknownHandle):
        shelf.open(done)
    assert shelf.open(open_).read(0, 5) == b"still"
    unfinished.commit()
    shelf.append_journal(b"{}\n")
    with pytest.raises(UnknownHandle):
        store.empty_shelf(handles.new())


def test_what_was_not_recorded_is_removed_from_a_reopened_shelf_and_nothing_else(make):
    store = make()
    shelf = store.open_shelf(handles.new(), name="again", retention="keep")
    recorded, unrecorded = stored(shelf, b"recorded"), stored(shelf, b"unknown to all")
    shelf.create(unfinished := handles.new()).append(b"cut off")
    shelf.close()
    again = store.open_shelf(handles.new(), name="again", retention="keep")
    assert again.remove_unrecorded({recorded}) == len(b"unknown to all" + b"cut off")
    assert again.open(recorded).read(0, 99) == b"recorded"
    for id in (unrecorded, unfinished):
        with pytest.raises(UnknownHandle):
            again.open(id)
    assert again.remove_unrecorded({recorded}) == 0
    with pytest.raises(StoreError, match="for reading only"):
        store.read_shelf(again.session).remove_unrecorded(())
