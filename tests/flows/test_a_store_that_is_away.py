"""A store on a server that does not answer: outputs wait in memory and are stored when it is back, and replies say so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from store_servers import Relay
from waiting import until

from overspill import Session, handles
from overspill.errors import StoreAway
from overspill.store.away import MAX_WAITING_BYTES, WaitingShelf, WaitingWriter
from overspill.store.protocols import Store
from overspill.wording import replies as wording

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
BIG = "a line of text\n" * 5_000


async def chunks(size: int) -> AsyncIterator[str]:
    for _ in range(size >> 20):
        yield "0123456789abcdef" * (1 << 16)


@pytest.mark.promise("nothing-lost")
async def test_an_output_waits_in_memory_and_is_stored_when_the_server_is_back(place: tuple[Store, Relay]):
    store, relay = place
    async with Session(name="team", store=store) as session:
        before = await session.call("dump", {}, lambda: BIG)
        assert wording.NOT_STORED_YET not in before.text
        relay.stop()
        assert (await session.call("add", {}, lambda: "3")).text == "3"
        large = await session.call("dump_more", {}, lambda: BIG + "more")
        assert large.kept is not None
        assert wording.NOT_STORED_YET in large.text
        assert session.open(large.kept.name).text() == BIG + "more"
        asked = {"id": large.kept.name, "mode": "slice", "slice": {"lines": "5000-5001"}}
        assert (await session.invoke("get_tool_output", asked)).text.startswith("a line of text\nmore")
        relay.start_again()
        await until(lambda: _is_stored(store, large.kept), within=60)
        after = await session.call("dump_again", {}, lambda: BIG + "again")
        assert wording.NOT_STORED_YET not in after.text
    async with Session(name="team", store=store) as again:
        assert again.open(large.kept.handle).text() == BIG + "more"
        assert [each.id for each in again.kept()] == [each.kept.id for each in (before, large, after)]


async def test_a_stream_that_the_server_leaves_in_the_middle_is_stored_whole_later(place: tuple[Store, Relay]):
    store, relay = place

    async def stream() -> AsyncIterator[str]:
        async for chunk in chunks(6 << 20):
            yield chunk
        relay.stop()
        async for chunk in chunks(6 << 20):
            yield chunk

    async with Session(name="team", store=store) as session:
        reply = await session.call("stream", {}, stream, background=False)
        assert reply.kept is not None
        assert (reply.kept.size.bytes, reply.kept.missing) == (12 << 20, "")
        assert wording.NOT_STORED_YET in reply.text
        relay.start_again()
        await until(lambda: _is_stored(store, reply.kept), within=60)
        with session.open(reply.kept.name) as stored:
            assert stored.bytes() == b"0123456789abcdef" * (12 << 16)


@pytest.mark.promise("nothing-lost")
async def test_what_arrived_although_the_answer_was_lost_is_stored_once_with_what_came_later(place: tuple[Store, Relay]):
    store, relay = place
    shelf = WaitingShelf(store.open_shelf(handles.new(), retention="keep"))
    for first in (b"", b"first"):
        writer = shelf.create(id := handles.new())
        writer.append(first)
        relay.stops_at_answer = True
        writer.append(b"second")
        writer.append(b"third")
        relay.start_again()
        writer.commit()
        await until(lambda writer=writer: settle(shelf, writer), within=60)
        assert (writer.refusal, shelf.open(id).read(0, 100)) == ("", first + b"secondthird")
    shelf.close()


def settle(shelf: WaitingShelf, writer: WaitingWriter) -> bool:
    shelf.settle()
    return not writer.is_waiting or bool(writer.refusal)


async def test_what_is_held_is_bounded_and_the_reply_says_what_is_not_stored(place: tuple[Store, Relay]):
    store, relay = place
    async with Session(name="team", store=store) as session:
        relay.stop()
        reply = await session.call("flood", {}, lambda: chunks(MAX_WAITING_BYTES + (8 << 20)), background=False)
        assert reply.kept is not None
        assert f"has {MAX_WAITING_BYTES + (8 << 20):,} bytes. Only the first {MAX_WAITING_BYTES:,} were saved" in reply.text
        assert wording.NOT_STORED_YET in reply.text
        assert reply.kept.missing
        relay.start_again()


async def test_reading_what_is_stored_says_that_trying_again_helps(place: tuple[Store, Relay]):
    store, relay = place
    async with Session(name="team", store=store) as session:
        reply = await session.call("dump", {}, lambda: BIG)
        assert reply.kept is not None
        relay.stop()
        with pytest.raises(StoreAway, match="Try again"):
            session.open(reply.kept.name)
        relay.start_again()


def _is_stored(store: Store, kept: Any) -> bool:
    try:
        reader = store.read_shelf(kept.session).open(kept.id)
        return reader.size == kept.size.bytes
    except Exception:  # whatever the store says until it has it
        return False
