"""Notes of a server on their way to a client: in order, before the answer they came before, and never many at a time."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import anyio
import mcp_types
import pytest
from mcp.shared.message import SessionMessage

from overspill.mcp.client.peer import Peer
from overspill.mcp.client.running import RunningServer
from overspill.mcp.client.streams import IncomingStream, Notifications
from overspill.mcp.proxy import stdio
from overspill.mcp.proxy.stdio import OutgoingStream

NOTE_BYTES, BATCH = 10_000, 50


def note(number: int) -> SessionMessage:
    params = {"number": number, "text": "x" * NOTE_BYTES}
    return SessionMessage(mcp_types.JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params=params))


def answer(number: int) -> SessionMessage:
    return SessionMessage(mcp_types.JSONRPCResponse(jsonrpc="2.0", id=number, result={}))


async def admit_all(_: object) -> bool:
    return True


class Server:
    """The near end of a connection to a server: what it sends, what was delivered, and which answers were read."""

    def __init__(self) -> None:
        self.notifications = Notifications()
        self.sent = 0
        self.delivered: list[int] = []
        self.answers: list[Any] = []
        self.answered = anyio.Event()
        self.may_deliver = anyio.Event()
        self._to_us, stream = anyio.create_memory_object_stream[Any](0)
        self._stream = IncomingStream(stream, self.notifications.wait_for_room, admit_all)

    async def send(self, item: Any) -> bool:
        """Whether it is read."""
        await anyio.wait_all_tasks_blocked()
        try:
            self._to_us.send_nowait(item)
        except anyio.WouldBlock:
            return False
        return True

    async def close(self) -> None:
        await self._to_us.aclose()
        await self._stream.aclose()

    async def flood(self) -> None:
        """Send notes until none is read, or there are so many that there seems to be no limit."""
        while self.sent < 400 and await self.send([note(self.sent + number) for number in range(BATCH)]):
            self.sent += BATCH

    async def read(self) -> None:
        async for item in self._stream:
            assert isinstance(item, SessionMessage)
            if isinstance(item.message, mcp_types.JSONRPCNotification):  # as the SDK gives it to `RunningServer`
                self.notifications.put(item.message.method, item.message.params or {})
                continue
            self.answers.append(getattr(item.message, "id", None))
            self.answered.set()

    async def deliver(self, method: str, params: dict[str, Any]) -> None:
        await self.may_deliver.wait()
        self.delivered.append(params["number"])


@asynccontextmanager
async def connected(deliver: Any = None) -> AsyncGenerator[Server]:
    server = Server()
    async with anyio.create_task_group() as group:
        group.start_soon(server.read)
        group.start_soon(server.notifications.relay, deliver or server.deliver)
        yield server
        group.cancel_scope.cancel()
    await server.close()


async def test_what_a_client_does_not_read_stays_with_the_server():
    async with connected() as server:
        await server.flood()
        assert server.sent == 150  # 1.5 MB, because the limit of 1 MiB is looked at before each batch
        server.may_deliver.set()
        await server.flood()
        assert server.sent == 400
        await anyio.wait_all_tasks_blocked()
        assert server.delivered == list(range(400))


@pytest.mark.parametrize(("method", "batch"), [("x" * 500_000, 1), ("x", 1_000)], ids=["long", "short"])
async def test_notes_that_say_nothing_take_room_too(method: str, batch: int):
    async with connected() as server:
        read = 0
        empty = SessionMessage(mcp_types.JSONRPCNotification(jsonrpc="2.0", method=method))
        while read < 10 and await server.send([empty] * batch):
            read += 1
        assert 2 <= read < 10


async def test_a_request_made_during_a_delivery_is_answered_even_if_there_is_no_room():
    ready = anyio.Event()

    async def ask(method: str, params: dict[str, Any]) -> None:
        await ready.wait()
        with server.notifications.asking():
            await server.answered.wait()
            await server.notifications.wait_until_delivered()
        server.delivered.append(params["number"])

    async with connected(ask) as server:
        await server.flood()
        assert server.sent == 150
        ready.set()
        assert await server.send([answer(7)])
        await anyio.wait_all_tasks_blocked()
        assert server.answers == [7]
        assert server.delivered == list(range(150))


async def test_an_answer_waits_for_the_notes_before_it():
    async with connected() as server:
        assert await server.send([note(0), note(1), answer(7)])
        await anyio.wait_all_tasks_blocked()
        assert server.answers == [7]
        done = anyio.Event()

        async def wait() -> None:
            await server.notifications.wait_until_delivered()
            assert server.delivered == [0, 1]
            done.set()

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert not done.is_set()
            server.may_deliver.set()


async def test_who_waits_for_a_delivery_is_woken_when_nothing_more_is_delivered():
    notifications, relaying = Notifications(), anyio.CancelScope()

    async def relay() -> None:
        with relaying:
            await notifications.relay(lambda *_: anyio.sleep_forever())

    notifications.put("notifications/message", {})
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(relay)
            group.start_soon(notifications.wait_until_delivered)
            await anyio.wait_all_tasks_blocked()
            relaying.cancel()
        await notifications.wait_until_delivered()
        await notifications.wait_for_room()


async def test_everything_that_a_server_sends_reaches_the_sdk_in_order():
    cancelled = mcp_types.JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 1})
    sender, receiver = anyio.create_memory_object_stream[Any](3)
    stream, problem = IncomingStream(receiver, Notifications().wait_for_room, admit_all), ValueError("torn")
    sender.send_nowait(problem)
    sender.send_nowait([note(1), SessionMessage(cancelled)])
    sender.close()
    found = [item async for item in stream]
    assert found[0] is problem
    assert [each.message for each in found[1:]] == [note(1).message, cancelled]
    await stream.aclose()


async def test_notes_are_delivered_in_order_and_cancellations_are_not_delivered():
    cancelled = mcp_types.JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 1})
    sender, receiver = anyio.create_memory_object_stream[Any](3)
    answers, _unread = anyio.create_memory_object_stream[SessionMessage](3)
    transport: Any = SimpleNamespace(restore=lambda item: item)
    running = RunningServer("server", transport, (receiver, answers), print)
    user, heard = running.join(Peer()), list[int]()

    async def hear(method: str, params: dict[str, Any]) -> None:
        heard.append(params["number"])

    sender.send_nowait([note(0), SessionMessage(cancelled), note(1), note(2)])
    async with anyio.create_task_group() as group:
        await group.start(running.run)
        group.start_soon(user.notifications.relay, hear)
        await anyio.wait_all_tasks_blocked()
        assert heard == [0, 1, 2]
        group.cancel_scope.cancel()
    sender.close()
    _unread.close()


async def test_lines_that_wait_are_bounded_and_arrive_in_order():
    source, target = os.pipe()
    stream, sent = OutgoingStream(partial(stdio._write, target)), 0

    async def send() -> None:
        nonlocal sent
        for number in range(1000):
            await stream.send(note(number))
            sent += 1
        await stream.aclose()

    async with anyio.create_task_group() as group:
        group.start_soon(stream.write_all)
        group.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        assert sent * NOTE_BYTES < 400_000
        received = await anyio.to_thread.run_sync(read_lines, source, 1000)
    assert [f'"number":{number},'.encode() in line for number, line in enumerate(received)] == [True] * 1000
    os.close(target)


def read_lines(source: int, count: int) -> list[bytes]:
    with os.fdopen(source, "rb") as lines:
        return [lines.readline() for _ in range(count)]


async def test_a_client_that_is_gone_keeps_no_sender_waiting():
    source, target = os.pipe()
    stream = OutgoingStream(partial(stdio._write, target))

    async def write() -> None:
        with pytest.raises(OSError, match="Broken pipe"):
            await stream.write_all()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            os.close(source)
            for number in range(1000):
                await stream.send(note(number))
    await stream.aclose()
    with pytest.raises(anyio.ClosedResourceError):
        await stream.send(note(0))
    os.close(target)


def test_who_shares_a_server_and_reads_nothing_fills_no_memory():
    notifications = Notifications()
    assert notifications.put("notifications/message", {"data": "x" * 2_000_000})
    assert notifications.put("notifications/message", {})
    notifications.drop_when_full()
    assert not notifications.put("notifications/message", {})
