"""A server that dies: who waited gets a clear error, who asks next gets the next start, and nobody waits for ever."""

import os
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from upstream import is_alive, said, script, up
from waiting import until

from overspill.errors import ServerError
from overspill.mcp.client import server as server_module
from overspill.mcp.client.connection import ClientIdentity, ServerConnection
from overspill.mcp.client.peer import Peer, ServerAccess
from overspill.mcp.client.server import Server

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        (
            "exit",
            {"words": "Disk full.", "code": 3},
            "The server raw ended with exit code 3. Its last line on standard error: Disk full.",
        ),
        ("exit", {"code": 0}, "The server raw ended with exit code 0."),
        ("kill", {}, "The server raw was ended by signal 9."),
        ("close_output", {}, "The server raw closed its output."),
    ],
)
async def test_a_call_that_was_under_way_gets_a_clear_error_and_the_next_one_works(
    tool: str, arguments: dict[str, Any], words: str
):
    async with up(script("raw")) as server:
        before = said(await server.call_tool("environment", {}))["pid"]
        with pytest.raises(ServerError) as caught:
            await server.call_tool(tool, arguments)
        assert str(caught.value) == words
        after = said(await server.call_tool("environment", {}))["pid"]
        assert (server.starts, server.problem, before != after, is_alive(before)) == (2, "", True, False)


async def test_a_server_that_dies_of_the_newer_greeting_is_greeted_in_the_older_way():
    async with up(script("raw", "fragile"), client=ClientIdentity(is_modern=True)) as server:
        assert (await server.wait_until_connected()).handshake.version == "2025-11-25"
        assert (server.starts, server.problem) == (2, "")


@pytest.mark.both_loops
async def test_all_calls_that_were_under_way_get_the_error():
    failures: list[str] = []
    async with up(script("raw")) as server:

        async def hang() -> None:
            with pytest.raises(ServerError) as caught:
                await server.call_tool("hang", {})
            failures.append(str(caught.value))

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(hang)
            await server.call_tool("echo", {})
            with pytest.raises(ServerError):
                await server.call_tool("kill", {})
        assert failures == ["The server raw was ended by signal 9."] * 5


async def test_whatever_fails_over_what_a_server_said_ends_its_own_connection_alone():
    class Clumsy(Peer):
        async def on_notification(self, server: str, method: str, params: dict[str, Any]) -> None:
            raise OverflowError(f"{params}")

    logged: list[str] = []
    server = Server(ServerAccess(script("raw"), dict(os.environ), peer=Clumsy(), log=logged.append))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(server.run)
            with pytest.raises(ServerError):
                await server.request("tools/call", {"name": "progress"}, progress=_heard)
            assert said(await server.call_tool("environment", {}))["pid"]
            group.cancel_scope.cancel()
    assert (logged, server.starts) == (["The connection to the server raw was lost (OverflowError)."], 2)


async def _heard(_: object) -> None:
    """Nobody minds."""


@pytest.mark.both_loops
async def test_a_death_is_noticed_though_a_child_holds_the_pipes_open():
    async with up(script("raw")) as server:
        family = said(await server.call_tool("child", {}))
        with pytest.raises(ServerError) as caught:
            await server.call_tool("kill", {})
        assert str(caught.value) == "The server raw was ended by signal 9."
        await server.call_tool("echo", {})
        assert not any(map(is_alive, family))


@pytest.mark.both_loops
async def test_a_server_that_reads_no_more_is_started_again():
    async with up(script("raw")) as server:
        await server.call_tool("close_input", {})
        with pytest.raises(ServerError) as caught:
            await server.call_tool("echo", {})
        assert str(caught.value) == "The server raw stopped reading its input. Its last line on standard error: Input closed."
        assert said(await server.call_tool("echo", {}))["name"] == "echo"


async def test_a_server_that_ends_at_once_is_tried_with_growing_pauses_and_nobody_hangs_or_hears_the_same_again():
    logged: list[str] = []
    failed: list[float] = []
    server = Server(ServerAccess(script("raw", "exit"), dict(os.environ), log=logged.append))
    words = "The server raw ended with exit code 4. Its last line on standard error: Cannot open the database."
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(server.run)
            for _ in range(3):
                with pytest.raises(ServerError) as caught:
                    await server.wait_until_connected()
                assert str(caught.value) == f"{words} Overspill keeps trying to start it; try again in a moment."
                failed.append(anyio.current_time())
            group.cancel_scope.cancel()
    assert logged == [words]
    first, second, third = failed
    assert second - first > 0.25
    assert third - second > 0.5


async def test_when_the_next_start_is_far_calls_fail_at_once_and_say_when():
    server = Server(ServerAccess(script("raw", "exit"), dict(os.environ)))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(server.run)
            await until(lambda: server.starts == 6 and server.problem, 50)
            with anyio.fail_after(30):
                while True:
                    with pytest.raises(ServerError) as caught:
                        await server.wait_until_connected()
                    if not str(caught.value).endswith("in a moment."):
                        break
            assert str(caught.value).endswith(("try again in 8 s.", "try again in 7 s."))
            group.cancel_scope.cancel()


async def test_calls_made_while_it_starts_again_wait_for_it():
    async with up(script("raw")) as server:
        with pytest.raises(ServerError):
            await server.call_tool("kill", {})
        names: list[str] = []

        async def echo() -> None:
            names.append(said(await server.call_tool("echo", {}))["name"])

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(echo)
        assert (names, server.starts) == (["echo"] * 5, 2)


async def test_a_server_that_never_answers_its_greeting_is_not_waited_for_longer_than_asked():
    async with up(script("raw", "mute")) as server:
        with pytest.raises(ServerError) as caught:
            await server.wait_until_connected(0.5)
        assert str(caught.value) == (
            "The server raw has not answered yet. Overspill keeps trying to start it; try again in a moment."
        )


async def test_a_server_that_never_answers_its_greeting_is_given_up_and_started_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server_module, "_START_SECONDS", 2.0)
    async with up(script("raw", "mute")) as server:
        with pytest.raises(ServerError) as caught:
            await server.wait_until_connected(50)
        assert str(caught.value) == (
            "The server raw did not answer within 2 s. Overspill keeps trying to start it; try again in a moment."
        )


async def test_each_start_is_told_before_anybody_else_can_ask():
    told: list[str] = []

    async def on_up(link: ServerConnection) -> None:
        told.append(said(await link.request("tools/call", {"name": "echo"}))["name"])

    server = Server(ServerAccess(script("raw"), dict(os.environ)), on_up=on_up)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(server.run)
            await server.wait_until_connected()
            assert told == ["echo"]
            with pytest.raises(ServerError):
                await server.call_tool("kill", {})
            await server.wait_until_connected()
            assert told == ["echo", "echo"]
            group.cancel_scope.cancel()


async def test_a_refusal_at_the_start_is_a_failed_start():
    async def on_up(link: ServerConnection) -> None:
        raise MCPError(-32601, "No levels")

    server = Server(ServerAccess(script("raw"), dict(os.environ)), on_up=on_up)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(server.run)
            with pytest.raises(ServerError) as caught:
                await server.wait_until_connected()
            group.cancel_scope.cancel()
    assert str(caught.value) == (
        "The server raw refused a request right after the handshake: No levels. "
        "Overspill keeps trying to start it; try again in a moment."
    )


async def test_an_error_that_reads_like_an_end_is_the_servers_own_while_it_lives():
    async with up(script("raw")) as server:
        with pytest.raises(MCPError):
            await server.call_tool("closed", {})
        assert (said(await server.call_tool("echo", {}))["name"], server.starts) == ("echo", 1)
