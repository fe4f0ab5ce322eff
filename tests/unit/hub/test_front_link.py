"""The hub's end of a connection: what was taken is confirmed in order, without waking up a front that has nothing else to do."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from select import select

import anyio
import pytest
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from overspill.hub import frames
from overspill.hub.first_answers import FirstAnswers
from overspill.hub.lines import FrontLines
from overspill.hub.link import FrontLink
from overspill.hub.place import Socket, send_first
from overspill.hub.process import Front

pytestmark = pytest.mark.anyio
GREETING = frames.pack(frames.HELLO, b"x" * 300_000)


@contextmanager
def connected() -> Generator[tuple[FrontLink, Socket]]:
    """A link whose front has not said anything yet, and the front's end."""
    ours, theirs = socket.socketpair()
    link = FrontLink(ours)
    front = Socket(fileno=theirs.detach())
    try:
        yield link, front
    finally:
        link.close()
        front.close()


async def greet(link: FrontLink, front: Socket) -> Socket:
    confirmations: list[Socket] = []
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: anyio.to_thread.run_sync(lambda: confirmations.append(send_first(front, GREETING))))
        assert await link.receive(frames.MAX_HELLO_BYTES) == (frames.HELLO, b"x" * 300_000)
    front.setblocking(False)
    return confirmations[0]


def read_frames(connection: Socket) -> list[bytes]:
    data, found = bytearray(), list[bytes]()
    while select([connection], (), (), 0)[0] and (more := connection.recv(1 << 20)):
        data += more
    while (frame := frames.unpack(data, 1 << 20)) is not None:
        assert frame[0] == frames.TAKEN
        found.append(frame[1][1:])
    return found


async def test_a_confirmation_wakes_up_nobody():
    with connected() as (link, front):
        confirmations = await greet(link, front)
        link.confirm(frames.IS_REQUEST, b"1")
        assert not select([front], (), (), 0)[0]
        assert read_frames(confirmations) == [b"1"]
        confirmations.close()


@pytest.mark.parametrize("long", [False, True])
async def test_confirmations_that_are_unread_for_long_or_long_come_over_the_connection_and_none_overtakes_another(long: bool):
    ids = [b"%d" % number for number in range(2_000)]
    if long:
        ids[10] = b"9" * 5_000
    with connected() as (link, front):
        confirmations = await greet(link, front)
        for id in ids[:1_500]:
            link.confirm(frames.IS_REQUEST, id)
        before = read_frames(confirmations)  # now there is room again, but earlier ones are on the other way
        for id in ids[1_500:]:
            link.confirm(frames.IS_REQUEST, id)
        await anyio.wait_all_tasks_blocked()
        after = read_frames(front)
        assert read_frames(confirmations) == []
        assert (before + after) == ids[: len(before + after)]
        assert len(before) == 10 if long else 10 < len(before) < 1_500
        assert after
        confirmations.close()


@pytest.mark.parametrize("count", [0, 1, 100])
async def test_of_what_a_front_hands_over_one_file_is_kept_open_at_most(count: int):
    before = len(os.listdir("/dev/fd"))
    with connected() as (link, front):
        numbers = (2).to_bytes(4, sys.byteorder) * count
        front.sendmsg([frames.pack(frames.HELLO, b"x")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)] if count else [])
        assert await link.receive() == (frames.HELLO, b"x")
        assert len(os.listdir("/dev/fd")) <= before + 2 + min(count, 1)
        link.confirm(frames.IS_REQUEST, b"1")  # what it handed over is not a socket
        assert read_frames(front) == [b"1"]
    assert len(os.listdir("/dev/fd")) == before


async def test_nothing_acts_on_a_line_that_the_front_cannot_know_was_taken(tmp_path: Path):
    """If the hub were killed now, the front would send every line again that it finds no confirmation for."""
    calls = [b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"pay"}}\n' % number for number in range(3_000)]
    acted: list[bytes] = []
    with connected() as (link, front):
        confirmations = await greet(link, front)
        lines = FrontLines(
            Front(link=link, words=[], folder="/", environ={}, first=FirstAnswers(tmp_path / "lists", [], "/", {}))
        )

        async def act(incoming: MemoryObjectReceiveStream[SessionMessage | Exception]) -> None:
            async for message in incoming:
                assert isinstance(message, SessionMessage)
                assert isinstance(message.message, JSONRPCRequest)
                acted.append(b"%d" % int(message.message.id))

        link.put_back(frames.pack(frames.DATA, b"".join(calls)))
        link.post(frames.LINES, b"x" * 10_000_000)  # an answer that the client does not read
        async with lines.open() as (incoming, _), anyio.create_task_group() as group:
            group.start_soon(act, incoming)
            await anyio.wait_all_tasks_blocked()
            known = read_frames(confirmations)
            assert 10 < len(known) < len(calls)
            assert acted == known
            group.cancel_scope.cancel()
        confirmations.close()
