"""A process is killed while its kept session stores: what nobody was told of goes, and what was told of stays."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import SOURCE

from overspill import Session, Settings, handles
from overspill.store.files.store import FileStore
from overspill.store.protocols import KeepLimits

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

BUSY = """
import sys, anyio, json
from overspill import Session, Settings, handles

async def endless():
    while True:
        yield b"x" * 100_000
        await anyio.sleep(0)
        if stop.is_set():
            await anyio.sleep_forever()

async def main():
    global stop
    stop = anyio.Event()
    async with Session(Settings(storeDir=sys.argv[1], asyncTimeoutSecs=0.01), name="research") as session:
        kept = [await session.keep(f"acknowledged {number} " * 2_000, "note") for number in range(5)]
        for _ in range(3):
            await session.call("endless", {}, endless)
        shelf = session._life.parts.shelf
        writer = shelf.create(handles.new())  # complete, but the process dies before it is recorded
        writer.append(b"y" * 50_000)
        writer.commit()
        with anyio.fail_after(60):
            while len(list(shelf.directory.path.glob("*.part"))) < 3:
                await anyio.sleep(0.01)
        stop.set()
        print(json.dumps([[each.handle, each.sha256] for each in kept]), flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


@contextmanager
def busy(root: Path) -> Iterator[tuple[subprocess.Popen[str], list[tuple[str, str]]]]:
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen([sys.executable, "-c", BUSY, str(root)], stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def files_in(root: Path) -> tuple[list[Path], list[Path]]:
    """Unfinished outputs, and complete ones."""
    found = list(root.glob("*/session-*/*"))
    return [path for path in found if path.suffix == ".part"], [path for path in found if handles.is_uuid(path.name)]


@pytest.mark.promise("nothing-lost")
async def test_reopening_removes_what_was_cut_off_or_never_recorded_and_nothing_else(tmp_path: Path):
    with busy(tmp_path) as (process, acknowledged):
        process.kill()
        process.wait(60)
    unfinished, complete = files_in(tmp_path)
    assert (len(unfinished), len(complete)) == (3, 6)
    async with Session(Settings(storeDir=str(tmp_path)), name="research") as session:
        unfinished, complete = files_in(tmp_path)
        assert unfinished == []
        assert {path.name for path in complete} == {handle.partition("/")[2] for handle, _ in acknowledged}
        for handle, sha256 in acknowledged:
            assert hashlib.sha256(session.open(handle).bytes()).hexdigest() == sha256


async def test_a_new_session_sweeps_the_unfinished_outputs_of_a_dead_one_but_not_those_of_a_live_one(tmp_path: Path):
    with busy(tmp_path) as (process, acknowledged):
        async with Session(Settings(storeDir=str(tmp_path), retention="keep")):
            assert len(files_in(tmp_path)[0]) == 3
        process.kill()
        process.wait(60)
        before = FileStore(tmp_path).expire(KeepLimits(7, 1 << 40)).bytes
    async with Session(Settings(storeDir=str(tmp_path), retention="keep")):
        assert files_in(tmp_path)[0] == []
    assert len(files_in(tmp_path)[1]) == 6  # whether a complete one was recorded is for its own session to find out
    assert before < sum(path.stat().st_size for path in files_in(tmp_path)[1]) + 20_000
    async with Session(Settings(storeDir=str(tmp_path)), name="research") as session:
        assert [kept.handle for kept in session.kept()] == [handle for handle, _ in acknowledged]


async def test_whatever_session_starts_next_sweeps_the_unfinished_outputs_of_a_dead_one(tmp_path: Path):
    with busy(tmp_path) as (process, acknowledged):
        async with Session(store=FileStore(tmp_path)):
            assert len(files_in(tmp_path)[0]) == 3
        process.kill()
        process.wait(60)
    async with Session(store=FileStore(tmp_path)):  # as of another process
        unfinished, complete = files_in(tmp_path)
    assert unfinished == []
    assert {handle.partition("/")[2] for handle, _ in acknowledged} < {path.name for path in complete}


FAILING_JOURNAL = """
import resource, signal, sys, anyio
from overspill import Session, Settings
from overspill.record.events import TurnOpened

async def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    async with Session(Settings(storeDir=sys.argv[1]), name="research") as session:
        for turn in range(1_000):
            session.note(TurnOpened(0, turn, 1_000))
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))  # the journal is longer, the output is not
        kept = (await session.call("dump", {}, lambda: "z" * 20_000)).kept
        print(kept.handle, flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


def store_and_die(code: str, root: Path) -> str:
    """What the process prints before it is killed."""
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen([sys.executable, "-c", code, str(root)], stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        printed = process.stdout.readline().strip()
        process.kill()
    return printed


async def test_an_output_that_was_acknowledged_while_the_journal_could_not_be_written_stays(tmp_path: Path):
    handle = store_and_die(FAILING_JOURNAL, tmp_path)
    (journal,) = tmp_path.glob("*/session-*/journal.jsonl")
    assert handle.partition("/")[2] not in journal.read_text()
    for _ in range(2):
        async with Session(Settings(storeDir=str(tmp_path)), name="research") as session:
            await session.keep("later", "note")
            (stored,) = tmp_path.glob(f"*/{handle}")
            assert stored.read_bytes() == b"z" * 20_000
