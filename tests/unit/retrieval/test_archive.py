"""What all sessions have stored, as another process sees it."""

import anyio
import pytest

from overspill.errors import HandleError, MalformedHandle
from overspill.retrieval.archive import Archive
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.memory import MemoryStore
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
        assert (await live.invoke("get_tool_output", {"id": kept.id, "mode": "raw"})).text == "Tool output expired"
        with anyio.fail_after(20):
            assert (await live.call("t", {}, lambda: "goes on")).text == "goes on"
