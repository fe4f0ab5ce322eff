"""The keep limits in sessions that never close, as those of an HTTP proxy."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import SOURCE
from waiting import until

from overspill import handles
from overspill.errors import ExpiredHandle, StoreFull, UnknownHandle
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.files.store import FileStore
from overspill.store.protocols import KeepLimits

DAY = 86_400
WEEK = KeepLimits(7, 1 << 30)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    store = FileStore(tmp_path)
    yield store
    store.close()


def stored(shelf, size: int, days_ago: float = 0) -> str:
    writer = shelf.create(id := handles.new())
    writer.append(b"x" * size)
    writer.commit()
    age(shelf.directory.path / id, days_ago)
    return id


def age(path: Path, days: float) -> None:
    then = time.time() - days * DAY
    os.utime(path, (then, then))


def is_there(shelf, id: str) -> bool:
    try:
        shelf.open(id).close()
    except UnknownHandle:
        return False
    return True


def test_an_output_of_a_live_session_is_removed_by_age_unless_it_was_read(store):
    shelf = store.open_shelf(handles.new(), retention="keep", limits=WEEK)
    old, read, young = (stored(shelf, 100, days) for days in (8, 8, 6))
    shelf.note_read(read)
    assert store.expire(WEEK).outputs == [old]
    assert [is_there(shelf, id) for id in (old, read, young)] == [False, True, True]


def test_a_new_output_removes_only_as_many_of_the_longest_unread_outputs_as_it_needs(store):
    shelf = store.open_shelf(handles.new(), retention="keep", limits=KeepLimits(7, 50_000))
    older, old, read = (stored(shelf, 15_000, days) for days in (3, 2, 5))
    shelf.note_read(read)
    new = stored(shelf, 15_000)
    assert [is_there(shelf, id) for id in (older, old, read, new)] == [False, True, True, True]


def test_if_removing_is_not_enough_the_new_output_is_over_quota_and_nothing_recent_is_removed(store):
    shelf = store.open_shelf(handles.new(), retention="keep", limits=KeepLimits(7, 50_000))
    old, young = stored(shelf, 10_000, 2), stored(shelf, 30_000, 0.9)
    writer = shelf.create(handles.new())
    with pytest.raises(StoreFull, match="Only outputs that were not read for 24 hours make room"):
        writer.append(b"x" * 30_000)
    assert [is_there(shelf, id) for id in (old, young)] == [False, True]
    assert 19_000 < writer.size < 20_000


@pytest.mark.anyio
async def test_the_limits_apply_without_opening_storing_or_reading(tmp_path: Path):
    store = FileStore(tmp_path, sweep_seconds=0.01)
    shelf = store.open_shelf(handles.new(), retention="keep", limits=WEEK)
    id = stored(shelf, 100)
    age(shelf.directory.path / id, 8)
    await until(lambda: not is_there(shelf, id))
    store.close()


@pytest.mark.anyio
async def test_a_removed_output_has_expired_and_the_answer_names_the_tool_to_call_again(tmp_path: Path):
    store = FileStore(tmp_path, sweep_seconds=0.01)
    async with Session(Settings(retention="keep"), store=store) as session:
        kept = (await session.call("read_log", {}, lambda: "line\n" * 10_000)).kept
        assert kept is not None
        (path,) = tmp_path.glob(f"*/{kept.handle}")
        assert "line" in (await session.invoke("get_artifact", {"artifact_id": kept.artifact_id, "lines": "1-2"})).text
        age(path, 8)
        await until(lambda: not path.exists())
        with pytest.raises(ExpiredHandle, match=r"has expired and was removed\. Call read_log again\."):
            session.open(kept.handle)
        answer = await session.invoke("tool_output", {"handle": kept.handle, "extract": "anything"})
        assert "Call read_log again." in answer.text
        answer = await session.invoke("get_artifact", {"artifact_id": kept.artifact_id})
        assert answer.text.startswith("410: ")


EXPIRE_UNTIL_KILLED = """
import sys
from pathlib import Path
from overspill.store.files.store import FileStore
from overspill.store.protocols import KeepLimits
print("ready", flush=True)
sys.stdin.readline()
FileStore(Path(sys.argv[1])).expire(KeepLimits(7, 1 << 30))
"""


def run(code: str, *args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *args]
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("removed_before_the_kill", [1, 40])
async def test_a_process_killed_while_it_removes_leaves_each_output_whole_or_expired(
    tmp_path: Path, removed_before_the_kill: int
):
    async with Session(Settings(store_dir=str(tmp_path)), name="big") as session:
        outputs = [await session.keep(f"output {number} " * 200, "list") for number in range(400)]
        for path in tmp_path.glob(f"*/session-{session.id}/*"):
            if handles.is_uuid(path.name):
                age(path, 8)
        (folder,) = tmp_path.glob(f"*/session-{session.id}")
        before = len(list(folder.iterdir()))
        with run(EXPIRE_UNTIL_KILLED, str(tmp_path)) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdout.readline()
            process.stdin.write("\n")
            process.stdin.flush()
            await until(lambda: len(list(folder.iterdir())) <= before - removed_before_the_kill)
            process.kill()
        expired = 0
        for kept in outputs:
            try:
                with session.open(kept.handle) as stored_output:
                    assert hashlib.sha256(stored_output.bytes()).hexdigest() == kept.sha256
            except ExpiredHandle:
                expired += 1
        assert expired >= removed_before_the_kill
        assert (await session.keep("still works", "list")).size.bytes == 11


LIVE = """
import sys
from pathlib import Path
from overspill import handles
from overspill.store.files.store import FileStore
from overspill.store.protocols import KeepLimits
store = FileStore(Path(sys.argv[1]), run_bytes=100_000)
shelf = store.open_shelf(handles.new(), retention="keep", limits=KeepLimits(7, 1 << 30))
writer = shelf.create(id := handles.new())
writer.append(b"x" * 60_000)
writer.commit()
print(shelf.session, id, flush=True)
sys.stdin.readline()
store.expire(KeepLimits(7, 1 << 30))
print(store.free(), flush=True)
sys.stdin.readline()
"""


def test_a_process_gets_its_quota_back_when_another_removes_its_outputs(store, tmp_path: Path):
    with run(LIVE, str(tmp_path)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        session, id = process.stdout.readline().split()
        (path,) = tmp_path.glob(f"*/session-{session}/{id}")
        age(path, 8)
        assert store.expire(WEEK).outputs == [id]
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "100000\n"
        process.stdin.close()


def test_two_processes_that_apply_the_limits_together_remove_each_output_once(store, tmp_path: Path):
    shelf = store.open_shelf(handles.new(), retention="keep", limits=WEEK)
    old, young = [stored(shelf, 10, 8) for _ in range(200)], [stored(shelf, 10) for _ in range(50)]
    processes = [run(EXPIRE_UNTIL_KILLED, str(tmp_path)) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    assert [process.communicate("\n", timeout=60) and process.returncode for process in processes] == [0, 0]
    assert not any(is_there(shelf, id) for id in old)
    assert all(is_there(shelf, id) for id in young)
