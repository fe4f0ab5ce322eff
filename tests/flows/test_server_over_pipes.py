"""A server as a process of ours: what it says arrives whole and in order, however it misbehaves, and nothing of it is left."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from upstream import connected, is_alive, said, script, up, words
from waiting import until

from overspill.errors import ServerError
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.connection import ClientIdentity
from overspill.mcp.client.peer import ServerAccess
from overspill.mcp.client.server import Server, open_servers

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


class Ear:
    """A peer that remembers, and answers what it is asked."""

    def __init__(self, answers: dict[str, Any] | None = None) -> None:
        self.heard: list[tuple[str, Any]] = []
        self._answers = answers or {}

    async def on_request(self, server: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.heard.append((f"{server}: {method}", params))
        if method not in self._answers:
            raise MCPError(-32601, "Not here", {"method": method})
        return self._answers[method]

    async def on_notification(self, server: str, method: str, params: dict[str, Any]) -> None:
        self.heard.append((method, params))


async def tool(link: Any, name: str, /, **arguments: Any) -> Any:
    return await link.request("tools/call", {"name": name, "arguments": arguments})


@pytest.mark.parametrize("first", ["handshake", "stateless"])
@pytest.mark.parametrize(
    ("options", "version"),
    [((), "2025-11-25"), (("legacy",), "2025-11-25"), (("old",), "2024-11-05"), (("modern",), "2026-07-28")],
)
async def test_each_server_is_spoken_to_in_the_version_it_knows(options: tuple[str, ...], version: str, first: str):
    expected = "2026-07-28" if first == "stateless" and not options else version
    async with connected(script("raw", *options), client=ClientIdentity(is_modern=first == "stateless")) as link:
        assert link.handshake.version == expected
        assert link.handshake.capabilities == {"tools": {}}
        assert link.handshake.info["name"] == "raw"
        meta = said(await tool(link, "echo")).get("_meta", {})
        assert meta.get("io.modelcontextprotocol/protocolVersion") == (expected if link.handshake.is_modern else None)


@pytest.mark.slow
async def test_a_server_that_takes_the_first_question_late_is_still_connected():
    async with connected(script("raw", "late"), client=ClientIdentity(is_modern=True)) as link:
        assert link.handshake.version == "2026-07-28"
        assert said(await tool(link, "echo"))["name"] == "echo"


@pytest.mark.parametrize(
    ("option", "modern", "why"),
    [
        ("refuse", False, None),
        ("strange", False, None),
        ("strange legacy", True, "Method not found; Overspill does not support its version '1999-01-01'"),
        ("refuse legacy", False, "No licence; Method not found"),
        ("refuse legacy", True, "Method not found; No licence"),
        ("future modern", False, "Unsupported protocol version; no shared version of the stateless protocol"),
    ],
)
async def test_a_refusal_names_both_reasons_and_is_none_where_the_other_way_does(option: str, modern: bool, why: str | None):
    async with up(script("raw", *option.split()), client=ClientIdentity(is_modern=modern)) as server:
        if why is None:
            assert (await server.wait_until_connected()).handshake.is_modern
            return
        with pytest.raises(ServerError) as caught:
            await server.wait_until_connected()
        assert str(caught.value) == (
            f"The server raw refused to start a session: {why}. Overspill keeps trying to start it; try again in a moment."
        )


@pytest.mark.both_loops
async def test_results_arrive_equal_in_every_field():
    async with connected(script("raw")) as link:
        arguments = {"text": "a\ud800b\n", "number": 2**80, "none": None, "deep": [{"": 1.5}]}
        result = await tool(link, "echo", **arguments)
        assert result["unknown"] == {"kept": [1, None]}
        assert said(result)["arguments"] == arguments
        odd = await tool(link, "surrogate")
        assert odd == {"content": [{"type": "text", "text": "a\ud800b"}], "n": 2**80}


async def test_an_error_of_the_server_is_its_own():
    async with connected(script("raw")) as link:
        with pytest.raises(MCPError) as caught:
            await tool(link, "none")
        assert (caught.value.code, caught.value.message, caught.value.data) == (-32602, "No tool none", {"tried": "none"})


async def test_garbage_among_the_lines_hides_no_answer():
    async with connected(script("raw")) as link:
        assert words(await tool(link, "garbage")) == "after the garbage"
        assert words(await tool(link, "twice")) == "first"
        assert said(await tool(link, "echo"))["name"] == "echo"


@pytest.mark.parametrize(
    ("name", "what"),
    [("malformed", "JSON that is not a JSON-RPC message"), ("torn", "a line that is not JSON")],
)
async def test_an_answer_that_is_no_message_is_an_error_for_the_one_who_asked(name: str, what: str):
    async with connected(script("raw")) as link:
        with pytest.raises(MCPError) as caught:
            await tool(link, name)
        assert caught.value.message == f"The server answered with {what}. Ask it for less."
        assert said(await tool(link, "echo"))["name"] == "echo"


async def test_notifications_arrive_before_the_answer_they_came_before():
    ear, steps = Ear(), []

    async def progress(params: dict[str, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        steps.append((params["progress"], params["mood"]))
        ear.heard.append(("progress", params["progress"]))

    async with connected(script("raw"), ear) as link:
        result = await link.request("tools/call", {"name": "progress", "_meta": {"mine": 1}}, progress=progress)
        assert words(result) == "done"
        assert steps == [(0, "odd"), (1, "odd"), (2, "odd")]
        message = "notifications/message"
        assert [(name, data if name == "progress" else data["data"]) for name, data in ear.heard] == [
            ("progress", 0), (message, 0), ("progress", 1), (message, 1), ("progress", 2), (message, 2),
        ]  # fmt: skip


async def test_who_is_told_something_may_ask_at_once():
    class Curious(Ear):
        async def on_notification(self, server: str, method: str, params: dict[str, Any]) -> None:
            self.heard.append((method, said(await tool(links[0], "echo"))["name"]))

    ear, links = Curious(), []
    async with connected(script("raw"), ear) as link:
        links.append(link)
        await link.request("tools/call", {"name": "progress", "_meta": {"progressToken": "x"}})
        assert ear.heard == [("notifications/message", "echo")] * 3


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("ping", {}),
        ("roots/list", {"roots": [{"uri": "file:///a", "unknown": 1}]}),
        ("elicitation/create", {"action": "accept", "content": {"name": "x"}}),
        ("sampling/createMessage", {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}),
    ],
)
async def test_what_the_server_asks_is_answered_by_the_peer(method: str, answer: dict[str, Any]):
    ear = Ear({method: answer})
    async with connected(script("raw"), ear) as link:
        assert said(await tool(link, "ask", method=method, params={"a": 1})) == {"result": answer}
        assert ear.heard == [(f"raw: {method}", {"a": 1})]


async def test_a_refusal_of_the_peer_reaches_the_server():
    async with connected(script("raw"), Ear()) as link:
        error = {"code": -32601, "message": "Not here", "data": {"method": "roots/list"}}
        assert said(await tool(link, "ask", method="roots/list")) == {"error": error}
    async with up(script("raw")) as server:
        assert said(await server.call_tool("ask", {"method": "ping"})) == {"result": {}}
        error = {"code": -32601, "message": "Method not found", "data": "roots/list"}
        assert said(await server.call_tool("ask", {"method": "roots/list"})) == {"error": error}


@pytest.mark.both_loops
async def test_who_stops_waiting_is_heard_by_the_server(capfdbinary: pytest.CaptureFixture[bytes]):
    async with connected(script("raw")) as link:
        async with anyio.create_task_group() as group:
            group.start_soon(tool, link, "hang")
            await tool(link, "echo")
            group.cancel_scope.cancel()
        assert said(await tool(link, "echo"))["name"] == "echo"
    assert b"cancelled 0" in capfdbinary.readouterr().err


async def test_a_huge_answer_in_any_order_of_fields_is_taken():
    async with connected(script("raw")) as link:
        for first in ("id", "result"):
            assert len(words(await tool(link, "huge", size=3_000_000, first=first))) == 3_000_000


@pytest.mark.slow
@pytest.mark.parametrize("first", ["id", "result"])
async def test_an_answer_beyond_all_bounds_is_refused_in_bounded_memory_and_the_link_goes_on(first: str):
    async with connected(script("raw")) as link:
        before = resident()
        with pytest.raises(MCPError) as caught:
            await tool(link, "huge", size=300_000_000, first=first)
        size = int(caught.value.message.split(" bytes")[0].rpartition(" ")[2].replace(",", ""))
        assert size > 300_000_000
        assert caught.value.message == (
            f"The server answered with a message of {size:,} bytes, more than the limit of 268,435,456. Ask it for less."
        )
        assert peak() - before < 350_000_000
        assert said(await tool(link, "echo"))["name"] == "echo"


def resident() -> int:
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
    return _memory("VmRSS")


def peak() -> int:
    return _memory("VmHWM")


def _memory(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


async def test_the_environment_and_the_folder_are_as_configured_and_no_more(tmp_path: Path):
    config = script("raw", env={"TOKEN": "t", "PLACE": "here"}, cwd=str(tmp_path))
    with anyio.fail_after(60):
        async with open_servers([config], {"PLACE": "there", "PATH": os.environ["PATH"]}) as servers:
            seen = said(await servers["raw"].call_tool("environment", {}))
    mine = {key: value for key, value in seen["env"].items() if not key.startswith(("LC_", "COV"))}
    assert (mine, seen["cwd"]) == ({"TOKEN": "t", "PLACE": "here", "PATH": os.environ["PATH"]}, str(tmp_path))


async def test_two_servers_with_the_same_command_are_two():
    with anyio.fail_after(60):
        async with open_servers([script("raw", name="one"), script("raw", name="two")], dict(os.environ)) as servers:
            pids = {said(await servers[name].call_tool("environment", {}))["pid"] for name in ("one", "two")}
            assert len(pids) == 2
    assert [pid for pid in pids if is_alive(pid)] == []


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (ServerConfig("x", "no-such-command-here"), "no such command 'no-such-command-here'"),
        (ServerConfig("x", sys.executable, cwd="/no/such/folder"), "no such folder '/no/such/folder'"),
        (ServerConfig("x", "/"), "Permission denied: '/'"),
        (ServerConfig("x", sys.executable, ("a\0b",)), "embedded null byte"),
    ],
)
@pytest.mark.both_loops
async def test_a_server_that_cannot_be_started_says_why(config: ServerConfig, why: str):
    async with up(config) as server:
        with pytest.raises(ServerError) as caught:
            await server.list_tools()
        assert str(caught.value) == (
            f"The server x cannot be started: {why}. Check its command and its folder. "
            "Overspill keeps trying to start it; try again in a moment."
        )


@pytest.mark.both_loops
async def test_children_that_a_server_leaves_behind_are_ended_with_it():
    async with up(script("raw")) as server:
        family = said(await server.call_tool("child", {}))
        assert [is_alive(pid) for pid in family] == [True, True]
    await until(lambda: not any(map(is_alive, family)))


@pytest.mark.both_loops
async def test_a_child_that_left_the_group_does_not_keep_us_waiting():
    async with up(script("raw")) as server:
        parent, child = said(await server.call_tool("daemon", {}))
    try:
        assert not is_alive(parent)
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.both_loops
async def test_a_server_that_wants_to_stay_is_killed():
    async with up(script("raw", "stubborn")) as server:
        pid = said(await server.call_tool("environment", {}))["pid"]
    assert not is_alive(pid)


async def test_the_list_of_tools_is_whole_and_free_of_nonsense():
    async with up(script("raw", "paged")) as server:
        assert [each["name"] for each in await server.list_tools()] == ["tool", "toola", "toolb"]
    async with up(script("raw", "nonsense")) as server:
        assert await server.list_tools() == [{"name": "good", "extra": 1, "inputSchema": {"type": "object"}}]
    async with up(script("raw", tools=("other",))) as server:
        assert await server.list_tools() == []
    async with up(script("raw", "toolless")) as server:
        assert await server.list_tools() == []


async def test_a_list_without_end_is_given_up():
    async with up(script("raw", "endless")) as server:
        with pytest.raises(ServerError) as caught:
            await server.list_tools()
        assert str(caught.value) == "The server raw lists its tools on more than 1,000 pages. The list seems to have no end."


async def test_a_tool_that_wants_a_person_says_so():
    async with up(script("raw", "modern")) as server:
        with pytest.raises(ServerError) as caught:
            await server.call_tool("input", {})
        assert str(caught.value) == "The tool input of the server raw asks for input from a person, and nobody can answer here."


async def test_a_result_of_a_tool_keeps_its_blocks():
    async with up(script("raw")) as server:
        params = json.dumps({"name": "echo", "arguments": {"a": 1}})
        assert (await server.call_tool("echo", {"a": 1})).content == [{"type": "text", "text": params}]


async def test_progress_is_told_to_whoever_called_though_nobody_else_listens():
    steps: list[float] = []

    async def progress(params: dict[str, Any]) -> None:
        steps.append(params["progress"])

    async with up(script("raw")) as server:
        assert words(await server.request("tools/call", {"name": "progress"}, progress=progress)) == "done"
    assert steps == [0, 1, 2]


async def test_the_hosts_own_exception_comes_out_as_it_is():
    with pytest.raises(KeyError):
        async with up(script("raw")):
            raise KeyError


async def test_a_server_that_was_closed_says_so():
    async with up(script("raw")) as server:
        await server.wait_until_connected()
    with pytest.raises(ServerError) as caught:
        await server.wait_until_connected()
    assert str(caught.value) == "The server raw is closed."


async def test_a_server_that_nobody_runs_is_not_waited_for_longer_than_asked():
    server = Server(ServerAccess(script("raw"), dict(os.environ)))
    with anyio.fail_after(10), pytest.raises(ServerError) as caught:
        await server.wait_until_connected(0)
    assert str(caught.value) == (
        "The server raw has not answered yet. Overspill keeps trying to start it; try again in a moment."
    )
