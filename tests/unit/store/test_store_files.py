"""What is special to files: where they lie, who may read them, what is refused and what becomes of a vanished directory."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from overspill import handles
from overspill.errors import StoreError, UnknownHandle
from overspill.store.files import layout, lock
from overspill.store.files.store import FileStore
from overspill.store.protocols import KeepLimits, ShelfLabel

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    store = FileStore(tmp_path)
    yield store
    store.close()


def directory_of(store: FileStore, session: str) -> Path:
    (found,) = store.root.glob(f"overspill-*/session-{session}")
    return found


def stored(shelf, data: bytes) -> str:
    writer = shelf.create(id := handles.new())
    writer.append(data)
    writer.commit()
    return id


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_nothing_is_created_before_the_first_shelf_and_nothing_stays_after_the_last(tmp_path):
    store = FileStore(tmp_path / "root")
    assert (store.shelves(), store.expire(KeepLimits(0, 0)).sessions) == ([], [])
    for call in (store.read_shelf, store.remove_shelf):
        with pytest.raises(UnknownHandle):
            call(handles.new())
    assert store.free() > 0
    store.close()
    assert list(tmp_path.iterdir()) == []
    store.open_shelf(handles.new()).close()
    assert list((tmp_path / "root").iterdir()) == []


def test_outputs_are_where_the_layout_says(store):
    shelf = store.open_shelf(session := handles.new())
    id = stored(shelf, b"content")
    shelf.create(running := handles.new())
    directory = directory_of(store, session)
    assert re.fullmatch(r"overspill-[0-9a-f]{12}", directory.parent.name)
    assert {path.name for path in directory.iterdir()} == {id, f"{running}.part", "journal.jsonl", "lock"}
    assert {path.name for path in directory.parent.iterdir()} == {directory.name, "lock"}
    assert [path.name for path in store.root.iterdir()] == [directory.parent.name]


@pytest.mark.parametrize("umask", [0, 0o022, 0o377])
def test_only_the_owner_may_read_whatever_the_umask(tmp_path, umask):
    if umask == 0o377 and os.geteuid() != 0:
        pytest.skip("a directory without permissions can be opened by root only")
    before = os.umask(umask)
    try:
        store = FileStore(tmp_path / "a" / "b")
        shelf = store.open_shelf(session := handles.new())
        stored(shelf, b"secret")
        shelf.create(handles.new())
    finally:
        os.umask(before)
    session_directory = directory_of(store, session)
    assert {mode(path) for path in (session_directory, session_directory.parent)} == {0o700}
    assert {mode(path) for path in session_directory.iterdir()} == {0o600}
    assert mode(session_directory.parent / "lock") == 0o600
    assert all(mode(path) & 0o077 == 0 for path in (tmp_path / "a", tmp_path / "a" / "b"))
    store.close()


def test_a_root_open_to_everyone_is_fine(store):
    store.root.chmod(0o777)
    assert store.open_shelf(handles.new()).session


def test_a_root_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    store = FileStore(tmp_path / "file")
    for call in (lambda: store.open_shelf(handles.new()), store.shelves):
        with pytest.raises(StoreError, match="a part of the path is a file or a symbolic link where a directory should be"):
            call()


@pytest.mark.parametrize("loose", ["run", "session"])
def test_a_directory_that_others_may_enter_is_refused_until_it_is_private(store, loose):
    shelf = store.open_shelf(session := handles.new(), name="mine", retention="keep")
    shelf.close()
    path = directory_of(store, session).parent if loose == "run" else directory_of(store, session)
    path.chmod(0o750)
    refusal = re.escape(f"{path} is refused: other users may enter it (mode 0750). Close it with `chmod 700` or remove it.")
    assert store.shelves() == []
    with pytest.raises(StoreError, match=refusal):
        store.read_shelf(session)
    with pytest.raises(StoreError, match=refusal):
        store.open_shelf(handles.new(), name="mine", retention="keep")
    path.chmod(0o700)
    assert store.open_shelf(handles.new(), name="mine").session == session


@as_root
def test_files_of_another_user_are_neither_listed_nor_touched(store):
    shelf = store.open_shelf(session := handles.new())
    directory = directory_of(store, session)
    foreign = directory.parent / f"session-{handles.new()}"
    foreign.mkdir(0o700)
    run = store.root / "overspill-0123456789ab"
    shutil.copytree(directory, run / directory.name)
    for path in (foreign, run):
        os.chown(path, NOBODY, NOBODY)
    assert [label.session for label in store.shelves()] == [session]
    shelf.close()
    store.close()
    FileStore(store.root).open_shelf(handles.new()).close()
    assert foreign.is_dir()
    assert (run / directory.name / "journal.jsonl").is_file()
    with layout.Root(store.root).open() as root, pytest.raises(StoreError, match=r"belongs to another user \(uid 65534\)"):
        root.open_directory(run.name)


@as_root
def test_a_file_of_another_user_is_not_read(store):
    shelf = store.open_shelf(session := handles.new())
    id = stored(shelf, b"swapped")
    os.chown(directory_of(store, session) / id, NOBODY, NOBODY)
    with pytest.raises(StoreError, match="is refused: it is not a file of this user"):
        shelf.open(id)


def test_a_link_in_place_of_a_run_is_not_followed(store, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    victim = FileStore(elsewhere)
    victim.open_shelf(session := handles.new(), name="theirs", retention="process").close()
    (link := store.root / "overspill-0123456789ab").symlink_to(directory_of(victim, session).parent)
    assert store.shelves() == []
    for call in (
        lambda: store.read_shelf(session),
        lambda: store.remove_shelf(session),
        lambda: store.open_shelf(handles.new(), name="theirs"),
    ):
        with pytest.raises(StoreError, match="symbolic link"):
            call()
    store.open_shelf(handles.new()).close()
    assert link.is_symlink()
    assert [label.session for label in victim.shelves()] == [session]
    victim.close()
    with layout.Root(store.root).open() as root, pytest.raises(FileExistsError):
        root.make_directory(link.name)


def test_a_link_in_place_of_a_session_is_refused(store, tmp_path_factory):
    target = tmp_path_factory.mktemp("target")
    run = directory_of(store, store.open_shelf(handles.new()).session).parent
    (run / f"session-{(session := handles.new())}").symlink_to(target)
    with pytest.raises(StoreError, match="a file of that name already exists, and stored outputs are never overwritten"):
        store.open_shelf(session)
    with pytest.raises(StoreError, match="symbolic link"):
        store.read_shelf(session)
    assert list(target.iterdir()) == []


def test_an_output_that_another_program_shortens_while_it_is_read_does_not_end_this_one(store):
    shelf = store.open_shelf(session := handles.new())
    writer = shelf.create(id := handles.new())
    writer.append(content := b"kept line\n" * 5_000)
    writer.commit()
    buffer = shelf.open(id).buffer()
    os.truncate(directory_of(store, session) / id, 0)
    assert bytes(buffer) == content


def test_a_link_in_place_of_an_output_is_neither_read_nor_written(store, tmp_path):
    (target := tmp_path / "target").write_text("precious")
    shelf = store.open_shelf(session := handles.new())
    directory = directory_of(store, session)
    (directory / (complete := handles.new())).symlink_to(target)
    (directory / f"{(running := handles.new())}.part").symlink_to(target)
    for id in (complete, running):
        with pytest.raises(StoreError, match="is already stored"):
            shelf.create(id)
        with pytest.raises(StoreError, match="it is a symbolic link, and those are never followed"):
            shelf.open(id)
    with layout.Root(directory).open() as opened, pytest.raises(FileExistsError):
        opened.make_file(complete)
    (directory / f"{running}.part").unlink()
    shelf.close()
    assert target.read_text() == "precious"
    assert [path.name for path in directory.iterdir()] == [complete]


def test_a_pipe_in_place_of_an_output_does_not_hang(store):
    shelf = store.open_shelf(session := handles.new())
    os.mkfifo(directory_of(store, session) / (id := handles.new()))
    with pytest.raises(StoreError, match="it is not a file of this user"):
        shelf.open(id)


def test_a_session_swapped_for_another_directory_gets_no_writes(store, tmp_path):
    shelf = store.open_shelf(session := handles.new())
    directory = directory_of(store, session)
    directory.rename(moved := directory.with_name("moved"))
    (other := tmp_path / "other").mkdir()
    directory.symlink_to(other)
    id = stored(shelf, b"where it belongs")
    assert (moved / id).read_bytes() == b"where it belongs"
    assert list(other.iterdir()) == []
    with pytest.raises(StoreError, match=f"Could not close session {session}"):
        store.close()
    assert list(moved.iterdir()) == []
    assert directory.is_symlink()


def test_files_that_are_not_ours_by_name_are_never_removed(store):
    shelf = store.open_shelf(session := handles.new())
    stored(shelf, b"ours")
    directory = directory_of(store, session)
    (directory / "notes.txt").write_text("somebody's")
    (directory / handles.new()).mkdir()
    (store.root / "overspill-notes").mkdir()
    (store.root / "overspill-0123456789AB").mkdir()
    shelf.close()
    store.close()
    FileStore(store.root).open_shelf(handles.new()).close()
    assert (directory / "notes.txt").read_text() == "somebody's"
    assert len(list(directory.iterdir())) == 2
    assert {"overspill-notes", "overspill-0123456789AB"} < {path.name for path in store.root.iterdir()}


def test_a_vanished_session_gives_clear_errors_and_open_readers_keep_working(store):
    shelf = store.open_shelf(session := handles.new())
    reader = shelf.open(stored(shelf, b"open before"))
    writer = shelf.create(handles.new())
    writer.append(b"half")
    shutil.rmtree(directory_of(store, session))
    for call in (lambda: shelf.create(handles.new()), writer.commit, lambda: list(shelf.journal())):
        with pytest.raises(StoreError, match="the file or its directory was removed by another program"):
            call()
    with pytest.raises(StoreError, match=r"journal\.jsonl was removed by another program\. Open a new session"):
        shelf.append_journal(b"{}\n")
    with pytest.raises(UnknownHandle):
        shelf.open(handles.new())
    writer.discard()
    assert reader.read(0, 99) == b"open before"
    assert bytes(reader.buffer()) == b"open before"
    shelf.close()
    assert list(store.root.iterdir()) == []


def test_a_new_session_starts_after_the_whole_root_vanished(tmp_path):
    store = FileStore(tmp_path / "root")
    lost = store.open_shelf(handles.new(), retention="process")
    shutil.rmtree(tmp_path / "root")
    assert store.free() > 0
    shelf = store.open_shelf(session := handles.new())
    assert [label.session for label in store.shelves()] == [session]
    lost.close()
    shelf.close()
    assert list((tmp_path / "root").iterdir()) == []


def test_two_stores_in_one_process_see_each_others_shelves_as_live(store):
    other = FileStore(store.root)
    ours, theirs = store.open_shelf(handles.new()), other.open_shelf(handles.new())
    for viewer in (store, other):
        assert {(label.session, label.live) for label in viewer.shelves()} == {(ours.session, True), (theirs.session, True)}
        for session in (ours.session, theirs.session):
            with pytest.raises(StoreError, match="is live"):
                viewer.remove_shelf(session)
    other.close()
    assert [label.session for label in store.shelves()] == [ours.session]


def test_checking_a_shelf_never_prevents_another_process_from_taking_it(store):
    store.open_shelf(session := handles.new(), name="calm", retention="keep").close()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            store.shelves()

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    try:
        with layout.Root(directory_of(store, session)).open() as directory:
            for _ in range(200):
                hold = lock.take(directory)
                assert hold, "somebody who looked was taken for the holder"
                hold.release()
    finally:
        stop.set()
        for looker in lookers:
            looker.join(20)
    assert not any(looker.is_alive() for looker in lookers)


def test_taking_a_shelf_waits_for_processes_that_only_check(store):
    store.open_shelf(session := handles.new(), retention="keep").close()
    taken: list[lock.Lock | None] = []
    with layout.Root(directory_of(store, session)).open() as directory:
        looking = directory.open_file("lock")
        fcntl.flock(looking, fcntl.LOCK_SH)
        taker = threading.Thread(target=lambda: taken.append(lock.take(directory)))
        taker.start()
        for _ in range(50):
            assert store.shelves() == [ShelfLabel(session, live=False, retention="keep")]
        assert taken == []
        os.close(looking)
        taker.join(20)
        assert taken[0]
        assert [label.live for label in store.shelves()] == [True]
        taken[0].release()


def test_a_relative_root_stays_in_place_when_the_process_changes_directory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    store = FileStore(Path("here"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.open_shelf(handles.new())
    assert len(list((tmp_path / "here").iterdir())) == 1
    store.close()


def test_shelves_and_their_store_may_close_at_the_same_time(tmp_path):
    for _ in range(10):
        store = FileStore(tmp_path)
        shelves = [store.open_shelf(handles.new()) for _ in range(4)]
        start = threading.Barrier(5, timeout=20)

        def close(what, start=start) -> None:
            start.wait()
            what.close()

        with ThreadPoolExecutor(5) as pool:
            list(pool.map(close, [*shelves, store]))
        assert list(tmp_path.iterdir()) == []


def test_the_quota_is_at_most_half_of_the_free_space(store):
    free = shutil.disk_usage(store.root).free
    big = FileStore(store.root, run_bytes=1 << 60)
    assert 0 < big.free() <= free // 2 + (64 << 20)
    big.open_shelf(handles.new())
    assert 0 < big.free() <= free // 2 + (64 << 20)
    big.close()


def test_a_writer_can_be_discarded_while_another_thread_appends(store):
    shelf = store.open_shelf(handles.new())
    writer = shelf.create(handles.new())
    appended, refused = threading.Event(), threading.Event()

    def append() -> None:
        try:
            while True:
                writer.append(b"x" * 1000)
                appended.set()
        except StoreError:
            refused.set()

    worker = threading.Thread(target=append)
    worker.start()
    assert appended.wait(20)
    writer.discard()
    assert refused.wait(20)
    worker.join(20)
    assert not worker.is_alive()
    free = store.free()
    shelf.close()
    assert free == pytest.approx(store.free(), abs=64 << 20)


@pytest.mark.parametrize("link", ["a", "a/b"])
def test_no_link_is_followed_on_the_way_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    (tmp_path / "cwd").mkdir()
    (tmp_path / "elsewhere" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "cwd")
    Path(link).parent.mkdir(exist_ok=True)
    Path(link).symlink_to(tmp_path / "elsewhere")
    store = FileStore(Path("a/b"))
    for look in (lambda: store.open_shelf(handles.new()), store.shelves, lambda: store.expire(KeepLimits(1, 1))):
        with pytest.raises(StoreError) as refusal:
            look()
        assert str(refusal.value) == (
            f"{tmp_path / 'cwd' / link} is refused: it is a symbolic link, which another user may have put there. "
            "Remove it, or set storeDir to an absolute path."
        )
    assert [each.name for each in (tmp_path / "elsewhere").rglob("*")] == ["b"]


def test_a_link_in_an_absolute_path_from_the_user_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    store = FileStore(tmp_path / "link")
    store.open_shelf(handles.new())
    assert any((tmp_path / "elsewhere").iterdir())
    store.close()


def test_a_relative_root_is_private_and_stays_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = FileStore(Path("b/c"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.open_shelf(handles.new()).close()
    assert (tmp_path / "b" / "c").stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "elsewhere").iterdir()) == []
    store.close()
