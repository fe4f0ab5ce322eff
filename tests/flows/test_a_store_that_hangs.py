"""A store on a server that accepts connections and says nothing: every wait ends, and what is said is true."""

from __future__ import annotations

import anyio
import pytest
from store_servers import Relay
from waiting import until

from overspill import Session, handles
from overspill.errors import StoreAway
from overspill.store.protocols import Store
from overspill.wording import replies as wording

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
BIG = "a line of text\n" * 5_000
PATIENCE = 180  # of the test; each request has five or eight seconds, and some are tried three times


def is_stored(store: Store, handle: str) -> bool:
    session, id = handles.parse(handle)
    assert session is not None
    try:
        return store.read_shelf(session).open(id).size > 0
    except Exception:  # whatever the store says until it has it
        return False


@pytest.mark.promise("nothing-lost")
async def test_an_output_waits_in_memory_until_the_server_answers_again(place: tuple[Store, Relay]):
    store, relay = place
    async with Session(name="team", store=store) as session:
        before = await session.call("dump", {}, lambda: BIG)
        assert before.kept is not None
        relay.hang()
        with anyio.fail_after(PATIENCE):
            assert (await session.call("add", {}, lambda: "3")).text == "3"
            large = await session.call("dump_more", {}, lambda: BIG + "more", background=False)
            assert large.kept is not None
            assert wording.NOT_STORED_YET in large.text
            assert session.open(large.kept.name).text() == BIG + "more"
        relay.pass_on()
        await until(lambda: is_stored(store, large.kept.handle if large.kept else ""), within=PATIENCE)
    async with Session(name="team", store=store) as again:
        assert again.open(large.kept.handle).text() == BIG + "more"
        assert again.open(before.kept.handle).text() == BIG


async def test_reading_says_that_the_store_does_not_answer_and_not_everybody_waits_for_it(place: tuple[Store, Relay]):
    store, relay = place
    async with Session(name="team", store=store) as session:
        kept = await session.keep(BIG, "dump")
        relay.hang()
        with anyio.fail_after(PATIENCE):  # one after the other would take longer
            for _ in range(50):
                with pytest.raises(StoreAway, match=r"does not answer.*Nothing that was stored is lost\. Try again"):
                    await anyio.to_thread.run_sync(session.open, kept.name)
        answer = await session.invoke("get_tool_output", {"id": kept.name, "mode": "raw"})
        assert "does not answer" in answer.text
        relay.pass_on()

        def reads() -> bool:
            try:
                with session.open(kept.name) as stored:
                    return stored.text() == BIG
            except StoreAway:
                return False

        await until(reads, within=PATIENCE)


async def test_a_notice_says_what_was_last_known_and_stops_no_turn(place: tuple[Store, Relay]):
    store, relay = place

    async def crawl() -> str:
        await anyio.sleep_forever()
        return ""

    async with (
        Session(name="team", shared=True, store=store) as mine,
        Session(name="team", shared=True, store=store) as other,
    ):
        job = await other.start("crawl", {}, crawl)
        await until(lambda: job in mine.notice())
        relay.hang()
        for _ in range(5):
            with anyio.fail_after(PATIENCE):
                assert job in await anyio.to_thread.run_sync(mine.notice)
                assert [each.tool for each in mine.running()] == ["crawl"]
        relay.pass_on()


async def test_opening_a_session_says_that_the_store_does_not_answer(place: tuple[Store, Relay]):
    store, relay = place
    relay.hang()
    with anyio.fail_after(PATIENCE), pytest.raises(StoreAway, match="does not answer"):
        await Session(name="team", store=store).begin()
    relay.pass_on()
