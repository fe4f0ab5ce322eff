"""A server that asks without end: what it asks fills no memory, and everything else it sends is still read."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types
import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.connection import ServerConnection
from overspill.mcp.client.peer import ServerAccess
from overspill.mcp.client.process import ServerProcess
from overspill.mcp.client.running import RunningServer
from overspill.mcp.client.streams import MAX_BYTES, MAX_REQUESTS

pytestmark = pytest.mark.anyio


def question(id: Any, text: str = "") -> SessionMessage:
    params = {"text": text}
    return SessionMessage(mcp_types.JSONRPCRequest(jsonrpc="2.0", id=id, method="sampling/createMessage", params=params))


class Asked:
    """A client that answers when it is told to."""

    def __init__(self) -> None:
        self.open = 0
        self.may_answer = anyio.Event()

    async def on_request(self, server: str, method: str, params: Any) -> dict[str, Any]:
        self.open += 1
        try:
            await self.may_answer.wait()
        finally:
            self.open -= 1
        return {}

    async def on_notification(self, server: str, method: str, params: Any) -> None: ...


class Asking:
    """The far end of a connection: a server that sends questions, and what it reads of the answers."""

    def __init__(self, process: ServerProcess) -> None:
        self.client = Asked()
        self.to_us, from_server = anyio.create_memory_object_stream[Any](1_000_000)
        to_server, self.from_us = anyio.create_memory_object_stream[Any](1_000_000)
        config = ServerConfig("asking", command="none")
        self.running = RunningServer("asking", process, (from_server, to_server), lambda _: None)
        self.connection = ServerConnection(self.running, ServerAccess(config, {}, peer=self.client))

    def ask(self, *questions: SessionMessage) -> None:
        self.to_us.send_nowait(list(questions))

    async def read_answers(self) -> list[Any]:
        await anyio.wait_all_tasks_blocked()
        found: list[Any] = []
        while self.from_us.statistics().current_buffer_used:
            found.append(self.from_us.receive_nowait().message)
        return found


@pytest.fixture
async def server() -> Any:
    async with await anyio.open_process(["true"]) as started:
        asking = Asking(ServerProcess("asking", started))
        async with anyio.create_task_group() as group:
            await group.start(asking.running.run)
            yield asking
            group.cancel_scope.cancel()
        asking.to_us.close()
        asking.from_us.close()


async def test_questions_without_answers_are_refused_from_some_number_on(server: Asking) -> None:
    server.ask(*map(question, range(MAX_REQUESTS + 500)))
    refused = await server.read_answers()
    assert server.client.open == MAX_REQUESTS
    assert {each.id for each in refused} == set(range(MAX_REQUESTS, MAX_REQUESTS + 500))
    assert all(each.error.message.startswith("Too many of your requests have no answer yet.") for each in refused)
    server.client.may_answer.set()
    assert len(await server.read_answers()) == MAX_REQUESTS
    server.ask(question("again"))
    assert [each.result for each in await server.read_answers()] == [{}]


async def test_an_id_that_is_used_again_counts_again(server: Asking) -> None:
    server.ask(*(question(7) for _ in range(MAX_REQUESTS + 1)))
    assert len(await server.read_answers()) == 1
    assert server.client.open == MAX_REQUESTS


async def test_large_questions_are_refused_sooner_but_never_the_only_one(server: Asking) -> None:
    large = "x" * (MAX_BYTES + 1)
    server.ask(question(1, large), question(2), question(3, large))
    assert {each.id for each in await server.read_answers()} == {2, 3}
    assert server.client.open == 1


async def test_a_question_that_the_server_takes_back_makes_room(server: Asking) -> None:
    for _ in range(2):
        server.ask(*map(question, range(MAX_REQUESTS)))
        assert await server.read_answers() == []
        assert server.client.open == MAX_REQUESTS
        server.ask(
            *(
                SessionMessage(
                    mcp_types.JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"requestId": number})
                )
                for number in range(MAX_REQUESTS)
            )
        )
        await server.read_answers()
        assert server.client.open == 0


async def test_an_answer_behind_many_questions_is_read(server: Asking) -> None:
    answers: list[Any] = []

    async def ask_server() -> None:
        answers.append(await server.connection.request("tools/call", {"name": "x"}))

    async with anyio.create_task_group() as group:
        group.start_soon(ask_server)
        (sent,) = await server.read_answers()
        server.ask(
            *(question(f"q{number}") for number in range(MAX_REQUESTS * 2)),
            SessionMessage(mcp_types.JSONRPCResponse(jsonrpc="2.0", id=sent.id, result={"content": []})),
        )
    assert answers == [{"content": []}]


async def test_a_refusal_of_the_client_is_an_answer(server: Asking) -> None:
    async def refuse(server: str, method: str, params: Any) -> dict[str, Any]:
        raise MCPError(-1, "no")

    server.client.on_request = refuse  # type: ignore[method-assign]
    for _ in range(2):
        server.ask(*map(question, range(MAX_REQUESTS)))
        assert [each.error.code for each in await server.read_answers()] == [-1] * MAX_REQUESTS
