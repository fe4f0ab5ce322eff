"""The index of names: how a session is found by its name without looking at the others, and what happens if it is wrong."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from commands import SOURCE

from overspill import handles
from overspill.errors import NameInUse, StoreError
from overspill.store.files import layout
from overspill.store.files.index import FILE
from overspill.store.files.store import FileStore
from overspill.store.protocols import KeepLimits
from tests.looks import count_looks

PATIENCE = 60


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    store = FileStore(tmp_path, max_wait_seconds=0.2)
    yield store
    store.close()


def keep(root: Path, name: str) -> str:
    """A closed session in a run of its own, as processes leave them."""
    store = FileStore(root)
    shelf = store.open_shelf(handles.new(), name=name, retention="keep")
    shelf.close()
    store.close()
    return shelf.session


def folder_of(root: Path) -> Path:
    return root / layout.hints_directory()


def index_of(root: Path) -> Path:
    return folder_of(root) / FILE


def ask(root: Path, statement: str, *values: object) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(index_of(root), isolation_level=None)) as rows:
        return rows.execute(statement, values).fetchall()


def names_in(root: Path) -> set[str]:
    return {name for (name,) in ask(root, "SELECT name FROM names")} if index_of(root).exists() else set()


def reopen(store: FileStore, name: str) -> str:
    shelf = store.open_shelf(handles.new(), name=name, retention="keep")
    shelf.close()
    return shelf.session


@pytest.mark.parametrize("name", ["session 3", "a new one"])
def test_opening_a_name_looks_at_no_other_session(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    def cost(count: int) -> int:
        root = tmp_path / str(count)
        for number in range(count):
            keep(root, f"session {number}")
        store = FileStore(root)
        store.open_shelf(handles.new())
        looks = count_looks(monkeypatch)
        reopen(store, name)
        assert root.stat().st_ino not in looks.listed
        spent = looks.opened
        store.close()
        return spent

    assert cost(5) == cost(30) > 0


def test_reading_labelling_and_removing_a_session_of_this_process_lists_no_others(
    store: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shelf = store.open_shelf(handles.new(), name="notes", retention="keep")
    keep(tmp_path, "others")
    looks = count_looks(monkeypatch)
    store.read_shelf(shelf.session).close()
    assert store.label(shelf.session).live
    shelf.close()
    store.remove_shelf(shelf.session)
    assert tmp_path.stat().st_ino not in looks.listed


def test_a_store_without_the_folder_finds_every_name_and_has_it_again(store: FileStore, tmp_path: Path):
    sessions = {name: keep(tmp_path, name) for name in ("one", "two", "family/three")}
    shutil.rmtree(folder_of(tmp_path))
    assert reopen(store, "two") == sessions["two"]
    assert names_in(tmp_path) == set(sessions)
    assert {name: reopen(store, name) for name in sessions} == sessions


def test_a_name_that_ends_with_its_sessions_id_is_found_by_a_later_process(store: FileStore, tmp_path: Path):
    first = FileStore(tmp_path)
    id = handles.new()
    first.open_shelf(id, name=f"proxy/{id}", retention="keep").close()
    first.close()
    assert reopen(store, f"proxy/{id}") == id


def test_only_the_owner_can_read_the_names(store: FileStore, tmp_path: Path):
    before = os.umask(0)
    try:
        store.open_shelf(handles.new(), name="notes", retention="keep")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder_of(tmp_path).stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder_of(tmp_path).iterdir()} == {0o600}


def test_a_folder_that_others_may_enter_is_refused_until_it_is_private(store: FileStore, tmp_path: Path):
    session = keep(tmp_path, "notes")
    folder_of(tmp_path).chmod(0o755)
    for fails in (lambda: reopen(store, "notes"), store.check_writable):
        with pytest.raises(StoreError, match=r"other users may enter it \(mode 0755\)"):
            fails()
    folder_of(tmp_path).chmod(0o700)
    assert reopen(store, "notes") == session


WRONG: dict[str, Callable[[Path, str], object]] = {
    "empty": lambda root, session: index_of(root).write_bytes(b""),
    "torn": lambda root, session: index_of(root).write_bytes(index_of(root).read_bytes()[:5000]),
    "no database": lambda root, session: index_of(root).write_bytes(b"\xff\x00{" * 5000),
    "overwritten in the middle": lambda root, session: overwrite(index_of(root), 4096),
    "overwritten at the end": lambda root, session: overwrite(index_of(root), -4096),
    "without a table": lambda root, session: ask(root, "DROP TABLE names"),
    "of another program": lambda root, session: replace_with(root, "CREATE TABLE names (x)"),
    "of an earlier version": lambda root, session: ask(root, "DROP TABLE notes"),
    "of a later version": lambda root, session: ask(root, "ALTER TABLE names ADD COLUMN more TEXT"),
    "with a trigger": lambda root, session: ask(root, "CREATE TRIGGER t AFTER INSERT ON names BEGIN DELETE FROM names; END"),
    "in another mode": lambda root, session: ask(root, "PRAGMA journal_mode = WAL"),
    "of a session that is gone": lambda root, session: point(root, "overspill-000000000000", session),
    "of a session with another name": lambda root, session: point(root, *place_of(root, "others")),
    "of a path outside": lambda root, session: point(root, "../elsewhere", session),
    "of a path as a session": lambda root, session: point(root, place_of(root, "notes")[0], "../../elsewhere"),
    "no text": lambda root, session: point(root, b"\xff", 7),
    "without the name": lambda root, session: (ask(root, "DELETE FROM names"), ask(root, "DELETE FROM notes")),
    "from before the machine started": lambda root, session: (
        ask(root, "DELETE FROM names"),
        ask(root, "UPDATE notes SET kind = 'whole since another time'"),
    ),
}


def overwrite(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    at %= len(data)
    data[at : at + 4096] = b"\xaa" * 4096
    path.write_bytes(data)


def replace_with(root: Path, statement: str) -> None:
    index_of(root).unlink()
    ask(root, statement)


def point(root: Path, run: object, session: object) -> None:
    ask(root, "UPDATE names SET run = ?, session = ? WHERE name = 'notes'", run, session)


def place_of(root: Path, name: str) -> tuple[str, ...]:
    return ask(root, "SELECT run, session FROM names WHERE name = ?", name)[0]


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_index_is_not_believed_and_put_right(store: FileStore, tmp_path: Path, wrong: str):
    session, other = keep(tmp_path, "notes"), keep(tmp_path, "others")
    right = place_of(tmp_path, "notes")
    WRONG[wrong](tmp_path, session)
    assert reopen(store, "notes") == session
    assert place_of(tmp_path, "notes") == right
    assert reopen(store, "others") == other


def test_a_name_leads_to_nothing_outside_the_store(tmp_path: Path):
    session = keep(tmp_path / "root", "notes")
    inside = tmp_path / "root" / place_of(tmp_path / "root", "notes")[0]
    shutil.copytree(inside, tmp_path / "elsewhere")
    point(tmp_path / "root", "../elsewhere", session)
    store = FileStore(tmp_path / "root")
    shelf = store.open_shelf(handles.new(), name="notes", retention="keep")
    assert shelf.directory.path.parent.resolve() == inside
    store.close()


IN_ITS_PLACE: dict[str, Callable[[Path, Path], object]] = {
    "a link to another file": lambda place, other: place.symlink_to(other),
    "a link to nowhere": lambda place, other: place.symlink_to(other.with_name("nowhere")),
    "a pipe": lambda place, other: os.mkfifo(place),
    "a directory": lambda place, other: place.mkdir(),
}


@pytest.mark.parametrize("kind", IN_ITS_PLACE)
def test_what_is_no_file_in_place_of_the_index_is_left_alone_and_names_are_found_without_it(tmp_path: Path, kind: str):
    root = tmp_path / "root"
    session = keep(root, "notes")
    other = tmp_path / "other"
    other.write_bytes(b"mine")
    place = index_of(root)
    place.unlink()
    IN_ITS_PLACE[kind](place, other)
    before = place.lstat()
    store = FileStore(root)
    held = store.open_shelf(handles.new(), name="notes", retention="keep")
    assert held.session == session
    with pytest.raises(NameInUse):
        FileStore(root).open_shelf(handles.new(), name="notes", retention="keep")
    store.close()
    assert (place.lstat().st_ino, other.read_bytes()) == (before.st_ino, b"mine")
    assert not other.with_name("nowhere").exists()


def test_a_store_whose_index_another_process_holds_is_listed_and_takes_sessions_without_a_name(store: FileStore, tmp_path: Path):
    session = keep(tmp_path, "notes")
    with closing(sqlite3.connect(index_of(tmp_path), isolation_level=None)) as rows:
        rows.execute("BEGIN EXCLUSIVE")
        assert [label.session for label in store.shelves(family="notes")] == [session]
        assert store.open_shelf(handles.new()).session
        with pytest.raises(StoreError, match="If that process is stopped, continue or end it"):
            reopen(store, "notes")
    assert reopen(store, "notes") == session


def test_names_that_an_earlier_version_gave_are_found_and_it_finds_ours(store: FileStore, tmp_path: Path):
    """It had a file for each name, and one that says that no name is missing."""
    session = keep(tmp_path, "notes")
    index_of(tmp_path).unlink()
    for file in ("whole", "sizes", "name-" + 64 * "0"):
        (folder_of(tmp_path) / file).touch(0o600)
    assert reopen(store, "notes") == session
    assert [path.name for path in folder_of(tmp_path).iterdir()] == [FILE]
    kept = keep(tmp_path, "theirs")
    ask(tmp_path, "DELETE FROM names WHERE name = 'theirs'")
    (folder_of(tmp_path) / "whole").touch(0o600)
    assert reopen(store, "theirs") == kept


def test_one_directory_that_cannot_be_trusted_keeps_no_other_name_from_opening(store: FileStore, tmp_path: Path):
    session, _ = keep(tmp_path, "notes"), keep(tmp_path, "others")
    (tmp_path / place_of(tmp_path, "others")[0]).chmod(0o755)
    assert reopen(store, "notes") == session
    with pytest.raises(StoreError, match="other users may enter it"):
        reopen(store, "others")
    shutil.rmtree(folder_of(tmp_path))
    assert reopen(store, "notes") == session
    for name in ("others", "neither"):  # it may have either
        with pytest.raises(StoreError, match="other users may enter it"):
            reopen(store, name)


@pytest.mark.parametrize("retention", ["session", "process", "keep"])
def test_a_name_goes_with_its_session_and_the_index_with_the_last_name(store: FileStore, tmp_path: Path, retention):
    kept = keep(tmp_path, "notes")
    store.open_shelf(handles.new(), name="others", retention=retention).close()
    store.close()
    assert ("others" in names_in(tmp_path)) == (retention == "keep")
    gone = FileStore(tmp_path).expire(KeepLimits(-1, 0)).sessions
    assert kept in gone
    assert list(tmp_path.iterdir()) == []
    assert reopen(store, "notes") != kept


def test_an_emptied_name_is_new_and_leaves_nothing_if_its_session_cannot_begin(store: FileStore, tmp_path: Path):
    id = handles.new()
    other = store.open_shelf(id)
    with pytest.raises(StoreError, match="already exists"):
        store.open_shelf(id, name="notes", retention="keep")
    assert not folder_of(tmp_path).exists()
    other.close()


OPEN_AND_STOP = """
import os, signal, sys
from pathlib import Path
from overspill import handles
from overspill.store.files.run import StoreRun
from overspill.store.files.store import FileStore

def stop(self, wanted, limits):
    print("held", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)

StoreRun.create_shelf = stop
FileStore(Path(sys.argv[1])).open_shelf(handles.new(), name="notes", retention="keep")
"""


def run(code: str, root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(root)], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)}
    )


def test_a_process_that_is_stopped_while_it_opens_a_name_holds_up_only_that_name(store: FileStore, tmp_path: Path):
    keep(tmp_path, "before")
    with run(OPEN_AND_STOP, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert reopen(store, "others")
        with pytest.raises(StoreError, match="If that process is stopped, continue or end it"):
            reopen(store, "notes")
        process.kill()
    assert reopen(store, "notes") == reopen(store, "notes")


OPEN_MANY = """
import sys
from pathlib import Path
from overspill import handles
from overspill.store.files.store import FileStore
store = FileStore(Path(sys.argv[1]))
for number in range(100_000):
    shelf = store.open_shelf(handles.new(), name=f"name {number}", retention="keep")
    print(number, shelf.session, flush=True)
    if number % 3 == 2:
        shelf.close()
        store.remove_shelf(shelf.session)
"""


@pytest.mark.slow
@pytest.mark.promise("nothing-lost")
def test_a_process_that_is_killed_while_it_opens_and_removes_names_leaves_every_kept_one_to_be_found(tmp_path: Path):
    for round in range(5):
        root = tmp_path / str(round)
        with run(OPEN_MANY, root) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(10 + 7 * round)]
            process.send_signal(signal.SIGKILL)
            lines += process.stdout.readlines()
        sessions = dict(line.split() for line in lines if line.endswith("\n"))
        store = FileStore(root)
        for number, session in list(sessions.items())[:-1]:
            assert (reopen(store, f"name {number}") == session) == (int(number) % 3 != 2)
        assert reopen(store, f"name {len(sessions) - 1}") == reopen(store, f"name {len(sessions) - 1}")
        assert reopen(store, f"name {len(sessions)}") == reopen(store, f"name {len(sessions)}")
        store.close()


def test_two_stores_never_have_one_name_at_the_same_time(store: FileStore, tmp_path: Path):
    held = store.open_shelf(handles.new(), name="notes", retention="session")
    for _ in range(2):
        with pytest.raises(NameInUse):
            FileStore(tmp_path).open_shelf(handles.new(), name="notes", retention="keep")
        index_of(tmp_path).unlink()
    held.close()
