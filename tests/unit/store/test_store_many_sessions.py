"""Many sessions in one root: what every look at them costs, and processes that open, close and expire them at the same time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import SOURCE

from overspill import handles
from overspill.errors import StoreError
from overspill.retrieval.archive import Archive
from overspill.store.files import layout
from overspill.store.files.layout import Directory
from overspill.store.files.store import FileStore
from overspill.store.files.survey import KeptFiles
from overspill.store.keep import KeptItem
from overspill.store.memory import MemoryStore
from overspill.store.protocols import Expired, KeepLimits
from overspill.store.quota import KeepGuard
from tests.looks import count_looks

PATIENCE = 60
DAY = 86_400
WEEK = KeepLimits(7, 1 << 30)


def keep(root: Path, name: str = "", days_ago: float = 0) -> Path:
    """A kept session in a run of its own, as the proxy leaves it, with one output. Returns its directory."""
    store = FileStore(root)
    shelf = store.open_shelf(handles.new(), name=name, retention="keep")
    writer = shelf.create(handles.new())
    writer.append(b"x" * 1000)
    writer.commit()
    directory = shelf.directory.path
    shelf.close()
    store.close()
    age(directory, days_ago)
    return directory


def age(directory: Path, days: float) -> None:
    then = time.time() - days * DAY
    for path in directory.iterdir():
        os.utime(path, (then, then))


LOOKS: dict[str, Callable[[Path], object]] = {
    "artifacts list": lambda root: Archive([FileStore(root)]).items(),
    "stats": lambda root: Archive([FileStore(root)]).counters(),
    "jobs": lambda root: Archive([FileStore(root)]).jobs(),
    "clean": lambda root: Archive([FileStore(root)]).remove(),
    "expiry": lambda root: FileStore(root).expire(KeepLimits(-1, 0)),
    "a new session": lambda root: FileStore(root).open_shelf(handles.new(), retention="keep", limits=WEEK).close(),
    "a named session": lambda root: FileStore(root).open_shelf(handles.new(), name="new", retention="keep", limits=WEEK).close(),
}


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS)
def test_looking_at_four_times_as_many_sessions_opens_four_times_as_many_files(
    tmp_path: Path, look: str, monkeypatch: pytest.MonkeyPatch
):
    def cost(count: int) -> int:
        root = tmp_path / str(count)
        for number in range(count):
            keep(root, f"session {number}")
        looks = count_looks(monkeypatch)
        LOOKS[look](root)
        return looks.count

    few, many = cost(10), cost(40)
    assert 0 < many < 5 * few


HOLD_AND_STOP = """
import os, signal, sys
from pathlib import Path
from overspill.store.files import layout, lock
with lock.hold_alone(layout.Root(Path(sys.argv[1])).open(), within=60):
    print("held", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that was stopped, as with Ctrl-Z, while it gave its session a name."""
    command = [sys.executable, "-c", HOLD_AND_STOP, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        yield process
        process.kill()


def test_a_stopped_process_keeps_no_session_from_beginning_storing_and_expiring(tmp_path: Path, stopped):
    old = keep(tmp_path, days_ago=8)
    store = FileStore(tmp_path, max_wait_seconds=0.05)
    shelf = store.open_shelf(handles.new(), retention="keep", limits=WEEK)
    assert not old.exists()
    id = handles.new()
    of_the_proxy = store.open_shelf(id, name=f"proxy/{id}", retention="keep", limits=WEEK)
    writer = of_the_proxy.create(handles.new())
    writer.append(b"works")
    writer.commit()
    shelf.close()
    store.remove_shelf(shelf.session)
    with pytest.raises(StoreError, match="If that process is stopped, continue or end it"):
        store.open_shelf(handles.new(), name="mine", retention="keep")
    stopped.send_signal(signal.SIGCONT)
    assert stopped.wait(PATIENCE) == 0
    assert store.open_shelf(handles.new(), name="mine", retention="keep").session
    store.close()


OPEN_AND_CLOSE = """
import sys
from pathlib import Path
from overspill import handles
from overspill.store.files.store import FileStore
from overspill.store.protocols import KeepLimits
for number in range(40):
    store = FileStore(Path(sys.argv[1]))
    retention = ("session", "keep", "process")[number % 3]
    shelf = store.open_shelf(id := handles.new(), retention=retention, limits=KeepLimits(7, 1 << 30))
    writer = shelf.create(id)
    writer.append(b"x" * 100)
    writer.commit()
    assert shelf.open(id).size == 100
    shelf.close()
    if retention == "keep":
        assert store.read_shelf(shelf.session).open(id).size == 100
        store.remove_shelf(shelf.session)
    store.close()
"""


@pytest.mark.slow
def test_processes_that_begin_clear_up_and_end_together_do_not_get_in_each_others_way(tmp_path: Path):
    command = [sys.executable, "-c", OPEN_AND_CLOSE, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) for _ in range(6)]
    assert [process.communicate(timeout=5 * PATIENCE)[1] for process in processes] == [""] * 6
    assert list(tmp_path.iterdir()) == []


def test_a_session_that_is_used_after_it_was_found_expired_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def use_first(self: KeptFiles, item: KeptItem) -> bool:
        for directory in (used, live):
            age(directory, 0)
        return remove(self, item)

    remove = KeptFiles.remove
    monkeypatch.setattr(KeptFiles, "remove", use_first)
    used = keep(tmp_path, days_ago=9)
    store = FileStore(tmp_path)
    shelf = store.open_shelf(handles.new(), retention="keep")
    live = shelf.directory.path
    age(live, 9)
    assert store.expire(WEEK) == Expired([], [], (left := store.expire(WEEK)).bytes, left.families)
    assert used.exists()
    store.close()


def test_what_was_unfinished_in_an_expired_session_is_subtracted_once(tmp_path: Path):
    expired, young = keep(tmp_path), keep(tmp_path)
    (expired / f"{handles.new()}.part").write_bytes(b"x" * 500_000)
    age(expired, 9)
    left = FileStore(tmp_path).expire(WEEK)
    assert left.sessions == [expired.name.removeprefix("session-")]
    assert left.bytes == sum(path.stat().st_size for path in young.iterdir())


def test_an_output_that_is_completed_while_files_are_listed_is_measured(tmp_path: Path):
    class CompletedMeanwhile(Directory):
        def names(self) -> list[str]:
            found = super().names()
            for name in found:
                os.rename(name, name.removesuffix(".part"), src_dir_fd=self.fd, dst_dir_fd=self.fd)
            return found

    (tmp_path / f"{(id := handles.new())}.part").write_bytes(b"x" * 77)
    with CompletedMeanwhile(os.open(tmp_path, os.O_RDONLY), tmp_path) as directory:
        assert {name: size for name, (size, _) in layout.measure_files(directory).items()} == {id: 77}


def test_what_is_granted_while_the_limits_are_applied_is_counted():
    limits = KeepLimits(7, 100)
    written: list[int] = []

    def expire(limits: KeepLimits, *, family: str | None = None) -> Expired:
        measured = sum(written)
        if is_measured and not written:
            written.append(guard.take("", limits, 60))
        return Expired([], [], measured, {"": measured})

    is_measured, guard = False, KeepGuard(expire)
    guard.apply(limits)
    is_measured = True
    guard.apply(limits)
    assert (written, guard.take("", limits, 100)) == ([60], 40)


class MeasuredStore(MemoryStore):
    def __init__(self) -> None:
        self.measured = 0
        super().__init__()

    def expire(self, limits: KeepLimits, *, family: str | None = None) -> Expired:
        self.measured += 1
        return super().expire(limits, family=family)


def test_a_full_store_with_old_outputs_is_measured_once_for_many_new_ones():
    store = MeasuredStore()
    shelf = store.open_shelf(handles.new(), retention="keep", limits=KeepLimits(7, 100_000))
    held = store._sessions[shelf.session]
    for _ in range(90):
        writer = shelf.create(id := handles.new())
        writer.append(b"x" * 1_000)
        writer.commit()
        held.outputs[id].used -= 2 * DAY
    before = store.measured
    for _ in range(30):
        writer = shelf.create(handles.new())
        writer.append(b"y" * 1_000)
        writer.commit()
    assert store.measured - before <= 6
    assert len(held.outputs) > 90
