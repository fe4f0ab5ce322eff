"""Every page over every kind of store, those on servers included."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import anyio
import pytest
from every_store import EVERY_STORE, MAKERS, Make
from viewers import Client, output_path, run_apart, running_viewer

from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.protocols import Store
from overspill.types import Kept

LOG = "".join(f"line {number} ok\n" for number in range(20_000)) + "ERROR payment 77 was declined\n"


@pytest.fixture(params=EVERY_STORE)
def stores(request: pytest.FixtureRequest) -> Iterator[tuple[Store, Store]]:
    """One for the session and one for the viewer, as in two processes. What is in memory has only one."""
    make: Make = MAKERS[request.param](request)
    writing = make()
    reading = writing if request.param == "memory" else make()
    yield writing, reading
    for each in (writing, reading):
        each.close()


def fill_store(store: Store) -> Kept:
    async def run() -> Kept:
        settings = Settings(retention="keep", record="replies")
        async with Session(settings, store=store, name="across machines", preload=False) as session:
            await session.call("small", {}, lambda: "fits")
            await session.call("read_log", {}, lambda: LOG, server="k8s")
            [kept] = session.kept()
            await session.invoke("tool_output", {"handle": kept.name, "extract": "which payment was declined?"})
        return kept

    return run_apart(run)


def test_every_page_reads_from_it(stores: tuple[Store, Store]):
    writing, reading = stores
    kept = fill_store(writing)
    with running_viewer(reading) as viewer:
        client = Client(viewer).enter()
        assert "across machines" in client.get().words
        page = client.get(f"/session/{kept.session}")
        assert "read_log" in page.words
        replies = re.findall(r'<details[^>]* hx-get="([^"]+)"', page.text)
        assert ">fits</pre>" in client.get(replies[0].removeprefix(client.root)).text
        assert "line 0 ok" in client.get(output_path(kept)).text
        assert "was declined" in client.get(f"{output_path(kept)}?last").text
        assert "Line 20,001" in client.get(f"{output_path(kept)}/search?way=grep&words=declined").text
        assert "declined" in client.get(f"{output_path(kept)}/search?way=ask&words=which+payment+was+declined").text
        raw = client.get(f"{output_path(kept)}/raw")
        assert hashlib.sha256(raw.body).hexdigest() == kept.sha256
        link = re.search(r'href="[^"]*(/citation/[^"]+)"', page.text)
        assert link is not None
        assert "Verified now: the output has its" in client.get(link[1]).words
        assert "k8s" in client.get("/savings?by=server").words


def test_what_is_removed_meanwhile_is_shown_as_gone(stores: tuple[Store, Store]):
    writing, reading = stores
    kept = fill_store(writing)
    with running_viewer(reading) as viewer:
        client = Client(viewer).enter()
        assert client.get(output_path(kept)).status == 200
        writing.remove_shelf(kept.session)
        assert client.get(f"/session/{kept.session}").status == 404
        assert "across machines" not in client.get().words


def test_an_open_page_is_told_what_a_live_session_does(stores: tuple[Store, Store]):
    writing, reading = stores

    async def run() -> None:
        async with Session(Settings(), store=writing, preload=False) as session:
            with running_viewer(reading) as viewer:
                client = Client(viewer).enter()
                page = await anyio.to_thread.run_sync(client.get, f"/session/{session.id}")
                assert "live" in page.words
                with client.listen(f"/live?session={session.id}") as answer:
                    assert await anyio.to_thread.run_sync(answer.readline) == b": watching\n"
                    await session.call("read_log", {}, lambda: LOG)
                    while await anyio.to_thread.run_sync(answer.readline) != b"event: changed\n":
                        pass
                await until_shown(client, f"/session/{session.id}", "read_log")

    anyio.run(run)


async def until_shown(client: Client, path: str, word: str) -> None:
    """The stored output is written before its call, and each write is a change."""
    with anyio.fail_after(30):
        while word not in (await anyio.to_thread.run_sync(client.get, path)).words:
            pass
