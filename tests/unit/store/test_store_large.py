"""A store with so many sessions that none of them is looked at before a session opens."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from commands import SOURCE
from waiting import until

from overspill import handles
from overspill.errors import StoreFull
from overspill.store.files import index, layout
from overspill.store.files.store import MAX_MEASURED_FIRST, FileStore
from overspill.store.keep import Measurement, Opening
from overspill.store.protocols import KeepLimits
from tests.looks import count_looks

DAY = 86_400
WEEK = KeepLimits(7, 1 << 30)
MANY = MAX_MEASURED_FIRST + 1


def fill(root: Path, count: int, *, days_ago: float = 0) -> list[Path]:
    """Closed sessions in runs of their own, as processes leave them. Returns their directories."""
    made: list[Path] = []
    for _ in range(count):
        session = handles.new()
        folder = root / f"overspill-{os.urandom(6).hex()}" / f"session-{session}"
        for part in (folder.parent, folder):
            part.mkdir(0o700, parents=True)
        journal = folder / "journal.jsonl"
        journal.touch(0o600)
        journal.write_bytes(Opening.now(session, f"others/{session}", "keep").line)
        then = time.time() - days_ago * DAY
        os.utime(journal, (then, then))
        made.append(folder)
    return made


def note(root: Path, limits: KeepLimits, families: dict[str, int], *, seconds_ago: float = 0) -> None:
    with layout.Root(root).open() as directory, index.open_index(directory, makes=True) as found:
        assert found is not None
        found.note(Measurement(limits, families, time.time() - seconds_ago))


def recall(root: Path) -> Measurement:
    with layout.Root(root).open() as directory, index.open_index(directory) as found:
        measured = found and found.recall()
    assert measured is not None
    return measured


def index_of(root: Path) -> Path:
    return root / layout.hints_directory() / index.FILE


def write(store: FileStore, size: int, limits: KeepLimits = WEEK) -> str:
    shelf = store.open_shelf(handles.new(), name="mine/notes", retention="keep", limits=limits)
    try:
        writer = shelf.create(handles.new())
        writer.append(b"x" * size)
        writer.commit()
    finally:
        shelf.close()
    return shelf.session


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    fill(root, MANY)
    return root


def test_the_first_session_of_a_process_looks_at_no_others_if_they_were_measured_lately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def cost(count: int) -> int:
        root = tmp_path / str(count)
        fill(root, count)
        note(root, WEEK, {"others": 1000})
        write(first := FileStore(root), 100)  # gives all names their hints
        first.close()
        looks = count_looks(monkeypatch)
        store = FileStore(root)
        write(store, 100)
        spent = looks.count
        store.close()
        return spent

    assert cost(MANY) == cost(3 * MANY) > 0


async def test_what_is_too_old_is_removed_after_the_session_has_opened(root: Path):
    (old,) = fill(root, 1, days_ago=8)
    store = FileStore(root)
    store.open_shelf(handles.new(), retention="keep", limits=WEEK)
    await until(lambda: not old.parent.exists())
    store.close()


def test_the_first_output_in_a_store_that_was_never_measured_is_counted_from_a_measurement(root: Path):
    limits = KeepLimits(7, 2_000)
    write(FileStore(root), 1_500, limits)
    index_of(root).unlink()
    with pytest.raises(StoreFull, match="keepBytes"):
        write(FileStore(root), 1_500, limits)


def test_what_short_processes_write_is_counted_though_none_of_them_measures(root: Path):
    limits = KeepLimits(7, 10_000)
    note(root, limits, {})
    for _ in range(3):
        store = FileStore(root)
        write(store, 3_000, limits)
        store.close()
    assert recall(root).families == {"mine": 9_000}
    with pytest.raises(StoreFull, match="keepBytes"):
        write(FileStore(root), 3_000, limits)


def test_a_note_that_says_too_much_refuses_nothing(root: Path):
    limits = KeepLimits(7, 10_000)
    note(root, limits, {"mine": 10_000})
    write(FileStore(root), 5_000, limits)


@pytest.mark.promise("nobody-elses")
def test_a_full_family_takes_no_room_from_another(root: Path):
    others = fill(root, 5, days_ago=3)
    note(root, limits := KeepLimits(7, 10_000), {"mine": 10_000, "others": 10_000})
    with pytest.raises(StoreFull):
        write(FileStore(root), 20_000, limits)
    assert all(folder.exists() for folder in others)


@pytest.mark.parametrize("days", [2, None], ids=["two days ago", "never"])
def test_a_process_that_ends_soon_applies_limits_that_were_not_applied_for_a_day(root: Path, days: float | None):
    (old,) = fill(root, 1, days_ago=8)
    if days:
        note(root, WEEK, {}, seconds_ago=days * DAY)
    store = FileStore(root)
    store.open_shelf(handles.new(), retention="keep", limits=WEEK).close()
    store.close()
    assert not old.exists()
    assert recall(root).age(time.time()) < DAY


async def test_stricter_limits_than_those_that_were_applied_lately_are_applied(root: Path):
    (old,) = fill(root, 1, days_ago=8)
    note(root, KeepLimits(30, 1 << 30), {})
    store = FileStore(root)
    store.open_shelf(handles.new(), retention="keep", limits=WEEK)
    await until(lambda: not old.exists())
    store.close()


DIE = """
import os, signal, sys
from pathlib import Path
from overspill import handles
from overspill.store.files.store import FileStore
store = FileStore(Path(sys.argv[1]))
print(store.open_shelf(handles.new(), name="temporary").directory.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("limits", [None, WEEK], ids=["session", "keep"])
async def test_what_a_killed_process_left_is_removed_after_the_next_one_has_opened_a_session(root: Path, limits):
    died = await anyio.run_process(
        [sys.executable, "-c", DIE, str(root)], env={**os.environ, "PYTHONPATH": str(SOURCE)}, check=False
    )
    assert died.returncode == -signal.SIGKILL
    left = Path(died.stdout.decode().strip())
    assert left.exists()
    store = FileStore(root)
    store.open_shelf(handles.new(), retention="keep" if limits else "session", limits=limits)
    await until(lambda: not left.parent.exists())
    store.close()


def put(file: Path, content: object) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as rows:
        rows.execute("INSERT OR REPLACE INTO notes VALUES ('measured', ?)", (content,))


def replace(file: Path, make: Callable[[], object]) -> None:
    file.unlink()
    make()


WRONG: dict[str, Callable[[Path, Path], object]] = {
    "a link": lambda file, other: replace(file, lambda: file.symlink_to(other)),
    "a pipe": lambda file, other: replace(file, lambda: os.mkfifo(file)),
    "a directory": lambda file, other: replace(file, file.mkdir),
    "torn": lambda file, other: put(file, b'{"t":1'),
    "huge": lambda file, other: put(file, b'{"t":1,"limits":{"days":7,"bytes":1},"families":{' + b" " * 5_000_000),
    "of another kind": lambda file, other: put(file, b'{"t":1e999,"limits":[],"families":{"x":"y"}}'),
    "no text": lambda file, other: put(file, 7),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_note_that_is_not_ours_or_cannot_be_parsed_is_ignored(root: Path, tmp_path: Path, wrong: str):
    other = tmp_path / "other"
    other.write_bytes(b"mine")
    note(root, WEEK, {})
    WRONG[wrong](index_of(root), other)
    write(FileStore(root), 1_000)
    assert other.read_bytes() == b"mine"


def test_all_count_that_end_at_the_same_time(root: Path):
    note(root, WEEK, {})
    stores = [FileStore(root) for _ in range(6)]
    for number, store in enumerate(stores):
        shelf = store.open_shelf(handles.new(), name=f"mine/{number}", retention="keep", limits=WEEK)
        writer = shelf.create(handles.new())
        writer.append(b"x" * 500)
        writer.commit()
    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(FileStore.close, stores))
    assert recall(root).families == {"mine": 3_000}
