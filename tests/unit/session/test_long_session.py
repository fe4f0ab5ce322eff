"""A session that runs for days holds little in memory, and everything it stored can still be read."""

import gc
import json
import tracemalloc
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from threading import current_thread
from typing import Any

import anyio
import pytest

from overspill import Session, Settings
from overspill.calls.background import MAX_FINISHED_JOBS
from overspill.errors import UnknownHandle
from overspill.gate.kept import MAX_ARGUMENT_CHARS, MAX_INLINE_BLOB_BYTES, MAX_OUTPUTS_IN_MEMORY
from overspill.handles import new
from overspill.store.files.store import FileStore
from overspill.store.memory import MemoryStore
from overspill.store.protocols import Shelf

pytestmark = pytest.mark.anyio

MORE = 50
IMAGE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}


def opened(**settings: Any) -> Session:
    return Session(Settings(**settings), store=MemoryStore())


async def run_jobs(session: Session, count: int, job: Callable[[], Awaitable[object]]) -> None:
    for _ in range(count):
        await session.start("filler", {}, job)
    with anyio.fail_after(60):
        while (await session.invoke("wait_for_tool_output", {})).text != "No async tools running.":
            pass


async def quick() -> str:
    return "quick"


@pytest.mark.promise("nothing-lost")
async def test_outputs_that_left_memory_are_read_from_the_journal_and_the_store():
    async with opened() as session:
        kept = [await session.keep(f"output {n}") for n in range(MAX_OUTPUTS_IN_MEMORY + MORE)]
        assert len(session._life.parts.gate.kept.latest()) == MAX_OUTPUTS_IN_MEMORY
        assert session.open(kept[0].handle).text() == "output 0"
        assert session.open(kept[1].artifact_id).kept == kept[1]
        reply = await session.invoke("get_tool_output", {"id": kept[2].artifact_id, "mode": "raw"})
        assert reply.text == "output 2"
        assert session.kept() == kept
        with pytest.raises(UnknownHandle):
            session.open(kept[0].handle.replace(kept[0].id, new()))


@pytest.mark.promise("nothing-lost")
@pytest.mark.slow
async def test_jobs_that_left_memory_still_answer():
    async def fail() -> str:
        raise ValueError("no such table")

    async def draw() -> list[dict[str, str]]:
        return [{"type": "text", "text": "a picture"}, IMAGE]

    async with opened() as session:
        failed, ready = await session.start("fail", {}, fail), await session.start("ready", {}, quick)
        drawn = await session.start("draw", {}, draw)
        await run_jobs(session, MAX_FINISHED_JOBS + MORE, quick)
        assert len(session._life.parts.calls.jobs.background) == MAX_FINISHED_JOBS
        answers = [await session.invoke("get_tool_output", {"id": id, "mode": "raw"}) for id in (failed, ready, drawn)]
        filled = await session.call("look", {"text": f"{{{{output:{failed}}}}}"}, lambda text: text)
    assert "no such table" in filled.text
    assert [answer.text for answer in answers] == ["Tool failed: ValueError: no such table", "quick", "a picture"]
    assert answers[2].content[1:] == [IMAGE]


@pytest.mark.slow
@pytest.mark.no_cover
async def test_a_finished_job_leaves_less_than_a_kilobyte_in_memory(tmp_path: Path):
    async def draw() -> list[dict[str, str]]:
        return json.loads('[{"type": "text", "text": "a picture"}, {"type": "image", "data": "aGVsbG8="}]')

    async def measure(count: int) -> int:
        for _ in range(count // 50):
            await run_jobs(session, 50, draw)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    async with Session(Settings(), store=FileStore(tmp_path)) as session:
        tracemalloc.start()
        try:
            before = await measure(MAX_FINISHED_JOBS)
            assert await measure(500) - before < 500 * 1_024
        finally:
            tracemalloc.stop()


async def test_images_of_the_background_are_stored_when_memory_holds_too_many():
    async def draw() -> list[dict[str, str]]:
        return [{"type": "text", "text": "a picture"}, IMAGE]

    async with opened() as session:
        session._life.parts.gate.held.inline_blob_bytes = MAX_INLINE_BLOB_BYTES
        id = await session.start("draw", {}, draw)
        await session.invoke("wait_for_tool_output", {})
        shown = (await session.invoke("get_tool_output", {"id": id, "mode": "raw"})).content
        (image,) = (kept for kept in session.kept() if kept.reason == "binary")
        assert session.open(image.handle).bytes() == b"hello"
    assert image.name in shown[1]["text"]


async def test_arguments_are_remembered_as_the_model_wrote_them_not_filled():
    async with opened() as session:
        large = await session.keep("x" * 100_000)
        id = await session.start("count", {"text": f"{{{{output:{large.handle}}}}}"}, lambda text: str(len(text)))
        await session.invoke("wait_for_tool_output", {})
        assert (await session.invoke("get_tool_output", {"id": id, "mode": "raw"})).text == "100000"
        assert max(map(len, session._life.parts.gate.arguments.values())) < 200


async def test_the_arguments_of_all_calls_together_are_bounded():
    arguments = {"text": "x" * (MAX_ARGUMENT_CHARS // 10)}
    async with opened(toolResponseMaxBytes=100) as session:
        for number in range(20):
            await session.call("echo", arguments, lambda text, number=number: f"{number:02}" * 100)
        held = session._life.parts.gate.arguments
        assert len(held) == 9
        assert sum(map(len, held.values())) <= MAX_ARGUMENT_CHARS


async def test_the_notice_needs_no_journal_for_jobs_whose_outputs_left_memory():
    async with opened() as session:
        await run_jobs(session, 3, quick)
        for n in range(MAX_OUTPUTS_IN_MEMORY):
            await session.keep(f"output {n}")
        outputs = session._life.parts.gate.kept
        in_memory = outputs.latest()
        assert session.notice().count("filler") == 3
        assert outputs.latest() == in_memory


class WatchedShelf:
    """A shelf that notes which threads read its journal."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.readers: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shelf, name)

    def journal(self) -> Iterable[bytes]:
        self.readers.append(current_thread().name)
        return self._shelf.journal()


class WatchedStore(MemoryStore):
    def open_shelf(self, *given: Any, **options: Any) -> Any:
        self.shelf = WatchedShelf(super().open_shelf(*given, **options))
        return self.shelf


async def test_the_event_loop_does_not_wait_while_the_journal_is_searched_for_what_left_memory():
    store = WatchedStore()
    async with Session(Settings(), store=store) as session:
        kept, job = await session.keep("first"), await session.start("ready", {}, quick)
        await session.invoke("wait_for_tool_output")  # so that it is the first to leave memory
        await run_jobs(session, MAX_FINISHED_JOBS + MORE, quick)
        for asked in ({"id": kept.artifact_id}, {"id": job}):
            store.shelf.readers.clear()
            assert not (await session.invoke("get_tool_output", {**asked, "mode": "raw"})).is_error
            assert store.shelf.readers
            assert current_thread().name not in store.shelf.readers
