"""The journal of a session whose store is on a server: the event loop runs on while it is written, and no reply overtakes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import anyio
import pytest
from commands import SOURCE
from store_servers import Relay
from waiting import until

from overspill import Session, handles
from overspill.record import events
from overspill.record.events import JobChanged, OutputStored, TurnOpened
from overspill.store.open import open_store
from overspill.store.protocols import Store

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
PATIENCE = 180


async def test_calls_are_answered_while_the_server_hangs_in_the_middle_of_a_write(place: tuple[Store, Relay]):
    store, relay = place
    async with Session(name="team", store=store) as session:
        await session.keep("a first output", "first")
        relay.hang()
        ledger, started = session._life.parts.ledger, anyio.Event()

        async def start() -> None:
            await session.start("crawl", {}, anyio.sleep_forever)
            started.set()

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(start)
                await until(lambda: ledger._in_flight)
                assert (await session.call("add", {}, lambda: "3")).text == "3"
                relay.pass_on()
                await started.wait()
        await session.abort()


@pytest.mark.promise("nothing-lost")
async def test_events_keep_their_order_over_a_server_that_hangs_for_a_while(place: tuple[Store, Relay]):
    store, relay = place
    async with Session(name="team", store=store) as session:
        id = session.id
        for turn in range(20):
            session.note(TurnOpened(turn, turn, 20))
            if turn == 5:
                relay.hang()
            if turn == 10:
                await until(lambda: session._life.parts.ledger._in_flight)
            if turn == 15:
                relay.pass_on()
    journal = events.decode_events(store.read_shelf(id).journal())
    assert [event.t for event in journal if isinstance(event, TurnOpened)] == list(range(20))


DIE = """
import anyio, os, signal, sys
from overspill import Session
async def main():
    session = Session(name="team", store=sys.argv[1], preload=False)
    await session.begin()
    match sys.argv[2]:
        case "call":
            told = (await session.call("dump", {}, lambda: "a line of text\\n" * 5_000)).kept.handle
        case "keep":
            told = (await session.keep("some text", "notes")).handle
        case "start":
            told = await session.start("crawl", {}, anyio.sleep_forever)
        case _:
            reply = await session.call("crawl", {}, anyio.sleep_forever, background="now")
            told = reply.job.id
    os.write(1, f"{session.id} {told}".encode())
    os.kill(os.getpid(), signal.SIGKILL)
anyio.run(main)
"""


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize("way", ["call", "keep", "start", "background"])
@pytest.mark.parametrize("url", ["postgres_url", "s3_url"])
async def test_what_a_reply_told_of_is_in_the_journal_of_a_process_killed_right_after_it(
    request: pytest.FixtureRequest, url: str, way: str
):
    place = request.getfixturevalue(url)
    command = [sys.executable, "-c", DIE, place, way]
    died = await anyio.run_process(command, env={**os.environ, "PYTHONPATH": str(SOURCE)}, check=False, stderr=subprocess.PIPE)
    assert died.returncode == -signal.SIGKILL, died.stderr
    session, told = died.stdout.decode().split()
    _, id = handles.parse(told)
    store = open_store(place)
    found = list(events.decode_events(store.read_shelf(session).journal()))
    kind = OutputStored if way in ("call", "keep") else JobChanged
    ids = [event.kept.id if isinstance(event, OutputStored) else event.id for event in found if isinstance(event, kind)]
    assert id in ids
    store.close()
