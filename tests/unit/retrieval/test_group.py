"""Sessions of one family: what an ended one kept, a later one reads; nobody else does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import anyio
import anyio.lowlevel
import pytest

from overspill import Session, Settings, handles
from overspill.errors import SessionClosed, UnknownHandle
from overspill.record.events import JobChanged, OutputStored, encode_events
from overspill.retrieval.group import SessionGroup, name_part
from overspill.store.files.shelf import FileShelf
from overspill.store.files.store import FileStore
from overspill.store.memory import MemoryShelf, MemoryStore
from overspill.store.protocols import Shelf, ShelfLabel
from overspill.types import Kept, Size
from overspill.wording import replies, slow_tools

BIG = "line of text\n" * 2000
SLICE = {"mode": "slice", "slice": {"lines": "1-1"}}


@pytest.fixture(params=[MemoryStore, FileStore], ids=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> MemoryStore | FileStore:
    return request.param() if request.param is MemoryStore else request.param(tmp_path)


async def kept_by(family: str, store: MemoryStore | FileStore) -> Kept:
    async with Session(family=family, store=store) as session:
        return await session.keep(BIG, "dump")


async def test_a_later_session_of_the_family_reads_what_an_ended_one_kept(store: MemoryStore | FileStore) -> None:
    kept = await kept_by("ann", store)
    async with Session(family="ann", store=store) as later:
        for spelling in (kept.handle, kept.artifact_id):
            with later.open(spelling) as stored:
                assert stored.text() == BIG
            assert (await later.invoke("get_tool_output", {"id": spelling, **SLICE})).text.startswith("line of text")
        assert (await later.extract(kept.handle, "text")).found


async def test_shared_sessions_of_a_family_share_with_those_of_the_same_name(
    store: MemoryStore | FileStore,
) -> None:
    earlier = await kept_by("ann", store)

    def member(name: str) -> Session:
        return Session(name=name, family="ann", shared=True, store=store)

    async with member("monday") as one, member("monday") as same, member("tuesday") as other:
        kept = await one.keep(BIG, "dump")
        for each in (one, same):
            assert [found.id for found in each.kept()] == [kept.id]
            with each.open(kept.handle) as stored:
                assert stored.text() == BIG
        assert other.kept() == []
        for spelling in (kept.handle, kept.artifact_id):
            with pytest.raises(UnknownHandle):
                other.open(spelling)
        with other.open(earlier.handle) as stored:
            assert stored.text() == BIG


async def leave_job(session: Session, *, fails: bool = False) -> str:
    async def tool() -> str:
        if fails:
            raise OSError("no route to host")
        await anyio.sleep_forever()
        return ""

    return await session.start("crawl", {}, tool)


async def test_a_later_session_learns_what_became_of_an_earlier_ones_jobs(store: MemoryStore | FileStore) -> None:
    async with Session(family="ann", store=store) as session:
        cut_off, failed = await leave_job(session), await leave_job(session, fails=True)
        await session.invoke("wait_for_tool_output")
    async with Session(family="ann", store=store) as later, Session(family="bob", store=store) as stranger:
        asked = [(id, {"id": id, "mode": "raw"}) for id in (cut_off, failed)]
        answers = [(await later.invoke("get_tool_output", args)).text for _, args in asked]
        assert answers == [replies.tool_failure(slow_tools.INTERRUPTED), "Tool failed: OSError: no route to host"]
        handle = handles.handle(later.id, handles.parse(cut_off)[1])
        for id, args in [*asked, (handle, {"id": handle, "mode": "raw"})]:
            assert (await stranger.invoke("get_tool_output", args)).text.startswith(f"Unknown tool ID: {id[:40]}")


async def test_a_session_that_is_opened_again_learns_what_became_of_its_jobs(store: MemoryStore | FileStore) -> None:
    async with Session(name="research", store=store) as session:
        id = await leave_job(session)
    async with Session(name="research", store=store) as again:
        asked = {"id": id, "mode": "raw"}
        assert (await again.invoke("get_tool_output", asked)).text == replies.tool_failure(slow_tools.INTERRUPTED)


async def test_only_the_family_has_something_to_read(store: MemoryStore | FileStore) -> None:
    async with Session(family="ann", store=store) as first:
        assert not first.has_outputs
        await first.keep(BIG)
        assert first.has_outputs
    async with Session(family="ann", store=store) as later, Session(family="bob", store=store) as stranger:
        assert (later.has_outputs, stranger.has_outputs) == (True, False)


@pytest.mark.promise("nobody-elses")
@pytest.mark.parametrize("family", ["", "bob", "an", "ann/x", "annabel"])
async def test_nobody_else_reads_it(store: MemoryStore | FileStore, family: str) -> None:
    kept = await kept_by("ann", store)
    async with Session(family=family, store=store) as stranger:
        for spelling in (kept.handle, kept.artifact_id):
            with pytest.raises(UnknownHandle):
                stranger.open(spelling)


async def test_a_live_session_keeps_its_outputs_to_itself(store: MemoryStore | FileStore) -> None:
    async with Session(family="ann", store=store) as one, Session(family="ann", store=store) as two:
        kept = await one.keep(BIG)
        with pytest.raises(UnknownHandle):
            two.open(kept.handle)


async def test_a_handle_with_the_wrong_session_in_it_opens_nothing(store: MemoryStore | FileStore) -> None:
    kept, other = await kept_by("ann", store), await kept_by("ann", store)
    async with Session(family="ann", store=store) as later:
        with pytest.raises(UnknownHandle):
            later.open(f"session-{other.session}/{kept.id}")


class RemovedOnTheWay(FileStore):
    """Somebody removes each shelf between the moment it is opened for reading and the moment it is read."""

    def read_shelf(self, session: str) -> FileShelf:
        shelf = super().read_shelf(session)
        self.remove_shelf(session)
        return shelf


async def test_a_session_that_is_removed_while_it_is_looked_at_is_passed_over(tmp_path: Path) -> None:
    ann = SessionGroup(RemovedOnTheWay(tmp_path), "ann")
    kept = await kept_by("ann", FileStore(tmp_path))
    assert ann.find(kept.handle) is None
    await kept_by("ann", FileStore(tmp_path))
    assert not ann.has_outputs()


async def test_sessions_of_a_family_are_kept_beyond_the_process(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    kept = await kept_by("ann", store)
    store.close()
    async with Session(Settings(storeDir=str(tmp_path)), family="ann") as later:
        with later.open(kept.handle) as stored:
            assert stored.text() == BIG


async def test_what_a_session_has_stored_is_listed_oldest_first() -> None:
    async with Session(store=MemoryStore()) as session:
        assert session.kept() == []
        first, second = await session.keep("a", "one"), await session.keep("b", "two")
        assert session.kept() == [first, second]


async def test_a_completed_job_is_news_once_and_none_when_it_was_asked_for() -> None:
    async with Session(store=MemoryStore()) as session:
        assert session.news() == ""
        done = anyio.Event()

        async def crawl() -> str:
            await done.wait()
            return "done"

        first = await session.start("crawl", {}, crawl)
        assert session.news() == ""
        done.set()
        with anyio.fail_after(10):
            while not (news := session.news()):
                await anyio.lowlevel.checkpoint()
        assert news == f"Completed tools:\n- crawl (id: {first}, size: 4B)"
        assert session.news() == ""
        await session.start("crawl", {}, lambda: "x")
        assert (await session.invoke("wait_for_tool_output", {})).text.startswith("Completed tools:")
        assert session.news() == ""


class SlowStore(MemoryStore):
    """Counts the shelves that are opened to read; the first waits a moment for a second."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = 0
        self.second = Event()

    def read_shelf(self, session: str) -> Shelf:
        self.opened += 1
        if self.opened > 1:
            self.second.set()
        self.second.wait(timeout=0.2)
        return super().read_shelf(session)


async def test_threads_that_look_for_the_same_output_search_for_it_once():
    store = SlowStore()
    kept = await kept_by("ann", store)
    async with Session(family="ann", store=store) as later:
        store.opened = 0
        with ThreadPoolExecutor(4) as threads:
            texts = [task.result(30) for task in [threads.submit(lambda: later.open(kept.handle).text()) for _ in range(4)]]
    assert texts == [BIG] * 4
    assert store.opened == 2  # to find it, and to read it


async def test_reading_many_outputs_of_earlier_sessions_takes_no_descriptor_for_each(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    async with Session(family="ann", store=store) as session:
        kept = [await session.keep(f"{number} {BIG}", "dump") for number in range(30)]
    others = [await kept_by("ann", store) for _ in range(10)]
    async with Session(family="ann", store=store) as later:
        later.open(kept[0].handle).close()
        before = len(os.listdir("/proc/self/fd"))
        for each in [*kept, *others]:
            with later.open(each.handle) as stored:
                assert stored.text().endswith(BIG)
        assert len(os.listdir("/proc/self/fd")) < before + 5
    store.close()


async def test_an_output_that_a_thread_asks_for_after_the_session_closed_is_not_opened(store: MemoryStore | FileStore):
    kept = await kept_by("ann", store)
    async with Session(family="ann", store=store) as later:
        outputs = later._life.parts.outputs
        outputs.recent(kept.handle)
    for look in (outputs.recent, outputs.open):
        with pytest.raises(SessionClosed):
            look(kept.handle)


FEW_DESCRIPTORS = """
import os, resource, sys
import anyio
from overspill import Session, Settings

async def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    before = len(os.listdir("/proc/self/fd"))
    for number in range(3):
        session = Session(Settings(storeDir=sys.argv[1]), family=f"family {number}")
        await session.begin()
        for _ in range(16):
            kept = await session.keep("line of text\\n" * 20_000, "dump")
            await session.invoke("get_tool_output", {"id": kept.name, "mode": "slice", "slice": {"lines": "1-1"}})
    print(len(os.listdir("/proc/self/fd")) - before, flush=True)
    os._exit(0)

anyio.run(main)
"""


@pytest.mark.slow
def test_where_descriptors_are_few_idle_sessions_leave_most_of_them(tmp_path: Path):
    done = subprocess.run([sys.executable, "-c", FEW_DESCRIPTORS, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert int(done.stdout) < 30


class WatchedStore(MemoryStore):
    """Notes in which thread it is searched, and whether all its sessions are listed."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()
        self.listings = 0

    def shelves(self, **more) -> list[ShelfLabel]:
        self.threads.add(threading.get_ident())
        self.listings += 1
        return super().shelves(**more)

    def label(self, session: str) -> ShelfLabel:
        self.threads.add(threading.get_ident())
        return super().label(session)

    def read_shelf(self, session: str) -> MemoryShelf:
        self.threads.add(threading.get_ident())
        return super().read_shelf(session)


async def test_an_unknown_handle_is_never_searched_on_the_event_loop() -> None:
    store = WatchedStore()
    await kept_by("ann", store)
    async with Session(family="ann", store=store) as session:
        store.threads.clear()
        for spelling in (handles.handle(handles.new(), handles.new()), handles.artifact_id(handles.new())):
            await session.invoke("get_tool_output", {"id": spelling, **SLICE})
            await session.invoke("get_artifact", {"artifact_id": spelling})
            await session.invoke("tool_output", {"handle": spelling, "extract": "anything"})
            with pytest.raises(UnknownHandle):
                await session.extract(spelling, "anything")
        assert store.threads
        assert threading.get_ident() not in store.threads


async def test_a_whole_handle_is_found_without_listing_every_session() -> None:
    store = WatchedStore()
    kept = await kept_by("ann", store)
    group, store.listings = SessionGroup(store, "ann"), 0
    found = group.find(kept.handle)
    assert found is not None
    assert found == kept
    assert group.find(handles.handle(handles.new(), kept.id)) is None
    assert store.listings == 0


@pytest.mark.parametrize(("owner", "other"), [("ann/work", "ann"), ("ann", "ann/work"), ("ann/job-x", "ann"), ("ann", "an")])
async def test_a_family_whose_name_begins_like_another_is_another(store: MemoryStore | FileStore, owner: str, other: str) -> None:
    kept = await kept_by(owner, store)
    async with Session(family=other, store=store) as session:
        assert session.kept() == []
        for spelling in (kept.handle, kept.artifact_id, kept.name):
            with pytest.raises(UnknownHandle):
                session.open(spelling)


def end_jobs(store: MemoryStore, count: int) -> list[str]:
    """As workers of a task engine do: each job has a part of the session for itself."""
    ids = [handles.new() for _ in range(count)]
    for id in ids:
        with closing(store.open_shelf(id, name=name_part("team", id), retention="keep")) as shelf:
            size = Size(4, 4, 1, 1)
            kept = Kept(id, id, "tool", "background", size, "", handles.created_ms(id), blocks=tuple(range(100)))
            shelf.append_journal(encode_events([OutputStored(1, kept), JobChanged(1, id, "tool", "ready", kept=True)]))
    return ids


def queue_jobs(store: MemoryStore, ids: list[str]) -> str:
    session = handles.new()
    with closing(store.open_shelf(session, name=f"team/{session}", retention="keep")) as shelf:
        shelf.append_journal(encode_events(JobChanged(1, id, "tool", "queued", is_elsewhere=True) for id in ids))
    return session


def test_jobs_that_ended_elsewhere_have_their_sizes_and_take_little_memory() -> None:
    store = MemoryStore()
    group = SessionGroup(store, "team", shared_by=handles.new())
    ids = end_jobs(store, 300)
    queueing = queue_jobs(store, ids)
    sizes = [{job.id: job.kept and job.kept.size.bytes for job in group.list_unread_jobs()} for _ in range(2)]
    assert sizes == [dict.fromkeys(ids, 4)] * 2  # the second time from memory
    held = group._job_lines
    assert held.keys() == {queueing, *ids}
    encoded = [lines for lines in held.values() if isinstance(lines, bytes)]
    assert len(encoded) == len(held)
    assert sum(map(len, encoded)) < 1_000 * len(ids)


def test_what_is_known_of_an_ended_session_is_forgotten_when_the_session_is_gone() -> None:
    store = MemoryStore()
    group = SessionGroup(store, "team", shared_by=handles.new())
    gone, stays = end_jobs(store, 2)
    queueing = queue_jobs(store, [gone, stays])
    assert len(group.list_unread_jobs()) == 2
    store.remove_shelf(gone)
    group.list_unread_jobs()
    assert group._job_lines.keys() == {queueing, stays}


def test_a_job_that_no_session_says_is_in_the_background_is_not_listed() -> None:
    store = MemoryStore()
    end_jobs(store, 1)
    assert SessionGroup(store, "team", shared_by=handles.new()).list_unread_jobs() == []
