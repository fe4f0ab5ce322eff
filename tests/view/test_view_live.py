"""Open pages follow a session: one in the same process through its observers, any other by its journal."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.to_thread
from viewers import Client, running_viewer

from overspill.record.events import TokensReported
from overspill.retrieval.archive import Archive
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.files.store import FileStore
from overspill.view.library import Library
from overspill.view.live import LivePages

NEVER = 3600.0
EVENT = TokensReported(0, 1, 1)


def test_a_session_in_the_same_process_is_followed_through_its_observers(tmp_path: Path):
    async def run() -> None:
        store = FileStore(tmp_path)
        with running_viewer(store, poll_seconds=NEVER) as viewer:
            client, release = Client(viewer).enter(), anyio.Event()
            async with Session(Settings(), store=store, observers=[viewer.observe], preload=False) as session:
                with client.listen(f"/live?session={session.id}") as answer, anyio.fail_after(60):
                    assert await anyio.to_thread.run_sync(answer.readline) == b": watching\n"
                    await session.start("slow_report", {}, release.wait)
                    while await anyio.to_thread.run_sync(answer.readline) != b"event: changed\n":
                        pass
                    page = await anyio.to_thread.run_sync(client.get, f"/session/{session.id}")
                    assert "running slow_report" in page.words
                release.set()
        store.close()

    anyio.run(run)


def test_a_bell_wakes_only_the_pages_of_its_session_and_forgets_no_ring():
    bells = LivePages(Library(Archive([])))

    async def run() -> None:
        with bells.hang("one") as one, bells.hang("") as every, anyio.fail_after(60):
            await anyio.to_thread.run_sync(bells.observe, "one", EVENT)  # before anybody waits
            await one.wait(NEVER)
            await every.wait(NEVER)
            await anyio.to_thread.run_sync(bells.observe, "other", EVENT)
            await every.wait(NEVER)
            with anyio.move_on_after(0.05) as waiting:
                await one.wait(NEVER)
            assert waiting.cancelled_caught

    anyio.run(run)
    bells.observe("one", EVENT)  # nobody looks any more
