"""What all sessions have stored, as another process sees it."""

import hashlib
from collections.abc import Iterator

import anyio
import pytest

from overspill.errors import HandleError, MalformedHandle
from overspill.record.events import OutputExtracted, Quote
from overspill.retrieval.archive import Archive
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.memory import MemoryReader, MemoryShelf, MemoryStore
from overspill.testing import SlowTool

pytestmark = pytest.mark.anyio


async def test_outputs_are_found_by_every_spelling_in_every_store():
    stores = [MemoryStore(), MemoryStore()]
    archive = Archive(stores)
    async with Session(store=stores[0]) as one, Session(store=stores[1]) as two:
        kept = [await one.keep("first"), await two.keep("second")]
        assert [item.kept for item in archive.items()] == kept
        for each in kept:
            assert [archive.find(spelling).kept for spelling in (each.id, each.handle, each.artifact_id)] == [each] * 3
        with archive.open(kept[1].handle) as stored:
            assert stored.text() == "second"
        with pytest.raises(HandleError, match="Nothing is stored under"):
            archive.find(kept[0].handle.replace(one.id, two.id))
        with pytest.raises(MalformedHandle):
            archive.find("x")


class WatchedStore(MemoryStore):
    """Notes which outputs are opened for reading and which journals are read."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.journals: list[str] = []

    def read_shelf(self, session: str) -> MemoryShelf:
        shelf, store = super().read_shelf(session), self

        class WatchedShelf(MemoryShelf):
            def open(self, id: str) -> MemoryReader:
                reader = shelf.open(id)
                store.opened.append(id)
                return reader

            def journal(self) -> Iterator[bytes]:
                store.journals.append(session)
                return shelf.journal()

        return WatchedShelf(self._get_session(session), None, self)


async def test_looking_for_one_output_opens_no_other():
    store = WatchedStore()
    async with Session(store=store) as one, Session(store=store) as two:
        kept = [await session.keep(f"{number}") for session in (one, two) for number in range(20)]
        for spelling in (kept[30].handle, kept[30].artifact_id):
            assert Archive([store]).find(spelling).kept == kept[30]
        assert set(store.opened) == {kept[30].id}


async def test_verify_reads_each_journal_once_however_many_outputs_it_tells_of():
    store = WatchedStore()
    async with Session(store=store) as session:
        for number in range(20):
            kept = await session.keep(f"row {number}\n" * 50)
            await session.extract(kept.handle, f"row {number}")
        archive = Archive([store])
        items = archive.items()
        store.journals.clear()
        assert [check.problem for check in archive.verify(items)] == [""] * 20
        assert store.journals == [session.id]


async def test_verify_counts_quotes_that_are_not_in_the_stored_bytes():
    store = MemoryStore()
    async with Session(store=store) as session:
        kept = await session.keep("row 1\nrow 2\n")
        quotes = (Quote(0, 5, hashlib.sha256(b"row 1").hexdigest()), Quote(6, 11, hashlib.sha256(b"row 3").hexdigest()))
        session.note(OutputExtracted(0, "op", kept.id, "extract", "auto", quotes=quotes))
        archive = Archive([store])
        assert [check.problem for check in archive.verify(archive.items())] == ["1 quoted passages are not in it"]


async def test_jobs_are_those_of_live_sessions():
    store, slow = MemoryStore(), SlowTool()
    archive = Archive([store])
    async with Session(Settings(retention="keep"), store=store) as session:
        await session.start("slow", {}, slow)
        await slow.begun()
        (line,) = archive.jobs()
        assert (line.session, line.change.tool, line.change.state) == (session.id, "slow", "running")
    assert archive.jobs() == []


async def test_remove_spares_live_sessions_unless_told_otherwise():
    store = MemoryStore()
    archive = Archive([store])
    async with Session(Settings(retention="keep"), store=store) as ended:
        old = await ended.keep("old")
    async with Session(store=store) as live:
        kept = await live.keep("new")
        assert archive.remove() == [old.session]
        assert [item.kept for item in archive.items()] == [kept]
        assert archive.remove(live=True) == [live.id]
        assert archive.items() == []
        assert (
            await live.invoke("get_tool_output", {"id": kept.id, "mode": "raw"})
        ).text == "Tool output expired. Call output again."
        with anyio.fail_after(20):
            assert (await live.call("t", {}, lambda: "goes on")).text == "goes on"
