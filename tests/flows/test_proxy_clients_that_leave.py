"""What becomes of slow calls whose client leaves, and of what a client that vanished left behind."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest
from http_proxy import ANN, BOB, ByHand, Listening, Served
from mcp import Client
from mcp_types import Implementation
from waiting import until
from wire import SOON, Process, config, every, proxied
from wire import Served as Piped

from overspill.calls.scheduler import MAX_LEFT_JOBS
from overspill.wording import replies, retrieval, slow_tools

ID = re.compile(r"art_\w+")
FORM = {"method": "elicitation/create", "params": {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}}}
both = pytest.mark.parametrize("mode", [pytest.param("legacy", marks=pytest.mark.slow), "auto"])

pytestmark = pytest.mark.anyio


@contextmanager
def served(root: Path, settings: dict[str, Any] | None = None, **options: Any) -> Iterator[Served]:
    proxy = Served(root / "store", {**SOON, **(settings or {})}, **options)
    try:
        yield proxy
    finally:
        proxy.end()


async def text(client: Client, name: str, arguments: dict[str, Any] | None = None) -> str:
    return (await client.call_tool(name, arguments or {})).content[0].text  # pyright: ignore


async def leave_job(proxy: Served, file: Path, mode: str = "legacy", token: str = ANN, **who: Any) -> str:
    """Start a job that ends when the file is there, and leave. Returns its id."""
    async with proxy.client(token, mode, **who) as client:
        answer = await text(client, "wait", {"file": str(file), "then": "the whole output"})
    return ID.findall(answer)[0]


def servers(root: Path) -> int:
    """How many servers of the test's proxies run."""
    found = 0
    for each in Path("/proc").glob("[0-9]*/environ"):
        try:
            found += f"SERVED_FOR={root}".encode() in each.read_bytes().split(b"\0")
        except OSError:
            continue
    return found


@pytest.fixture
def tagged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many processes this test has started that still run."""
    monkeypatch.setenv("SERVED_FOR", str(tmp_path))
    return lambda: servers(tmp_path)


@both
async def test_a_job_outlives_its_client_and_answers_the_next_one(tmp_path: Path, mode: str) -> None:
    with served(tmp_path) as proxy:
        id = await leave_job(proxy, tmp_path / "go", mode)
        async with proxy.client(ANN, mode) as client:
            assert await text(client, "get_tool_output", {"id": id, "mode": "raw"}) == retrieval.not_ready("1 of 4: warming up")
            assert id in await text(client, "wait_for_tool_output")
        (tmp_path / "go").touch()
        async with proxy.client(ANN, mode) as client:
            while "Completed" not in (told := await text(client, "wait_for_tool_output")):
                assert id in told
            assert told == f"Completed tools:\n- wait (id: {id}, size: 16B)"
            assert await text(client, "get_tool_output", {"id": id, "mode": "raw"}) == "the whole output"


@pytest.mark.promise("nobody-elses")
@both
@pytest.mark.slow
async def test_a_job_that_was_left_is_unknown_to_another_token(tmp_path: Path, mode: str) -> None:
    with served(tmp_path) as proxy:
        id = await leave_job(proxy, tmp_path / "go", mode)
        async with proxy.client(BOB, mode) as bob:
            assert await text(bob, "get_tool_output", {"id": id, "mode": "raw"}) == f"Unknown tool ID: {id}"
            assert await text(bob, "wait_for_tool_output") == slow_tools.NONE_RUNNING


@both
@pytest.mark.slow
async def test_another_kind_of_client_of_the_same_token_is_told_nothing_but_can_read_it(tmp_path: Path, mode: str) -> None:
    other = Implementation(name="another", version="1")
    with served(tmp_path) as proxy:
        id = await leave_job(proxy, tmp_path / "go", mode)
        async with proxy.client(ANN, mode, client_info=other) as client:
            assert await text(client, "wait_for_tool_output") == slow_tools.NONE_RUNNING
            assert await text(client, "get_tool_output", {"id": id, "mode": "raw"}) == retrieval.not_ready("1 of 4: warming up")
            assert id in await text(client, "wait_for_tool_output")  # it has asked for it now


@pytest.mark.slow
async def test_clients_that_are_there_are_not_told_about_each_others_jobs(tmp_path: Path) -> None:
    with served(tmp_path) as proxy:
        async with proxy.client(ANN) as one, proxy.client(ANN) as other:
            id = ID.findall(await text(one, "wait", {"file": str(tmp_path / "go")}))[0]
            (tmp_path / "go").touch()
            assert await text(other, "wait_for_tool_output") == slow_tools.NONE_RUNNING
            while "Completed" not in (told := await text(one, "wait_for_tool_output")):
                assert id in told
            mentioned = await other.call_tool("lines", {"count": 1000})
            assert "Completed tools" not in str(mentioned)


@pytest.mark.slow
async def test_a_client_that_vanished_answers_the_next_one_with_everything_it_had(tmp_path: Path) -> None:
    with served(tmp_path) as proxy:
        gone = ByHand(proxy.url)
        stored = re.search(r'session-[^"]+|\bout_[0-9a-z]+', gone.text("lines", {"count": 1000}))
        assert stored
        id = ID.findall(gone.text("wait", {"file": str(tmp_path / "go"), "then": "late"}))[0]
        back = ByHand(proxy.url)
        lines = {"id": stored.group(), "mode": "slice", "slice": {"lines": "1-1"}}
        assert back.text("get_tool_output", lines) == "line 1: the quick brown fox\n"
        (tmp_path / "go").touch()
        while "Completed" not in (told := back.text("wait_for_tool_output")):
            assert id in told
        assert back.text("get_tool_output", {"id": id, "mode": "raw"}) == "late"


@pytest.mark.slow
async def test_a_call_whose_connection_breaks_is_kept_for_the_next_client(tmp_path: Path) -> None:
    with served(tmp_path) as proxy:
        gone = ByHand(proxy.url)
        assert gone.text("pid").isdecimal()  # its server is up, so that the call arrives there before the connection breaks
        with pytest.raises(httpx2.TimeoutException):
            gone.text("wait", {"file": str(tmp_path / "go"), "then": "never heard"}, timeout=0.1)
        async with proxy.client(ANN, client_info=Implementation(name="by hand", version="1")) as back:
            with anyio.fail_after(30):
                while not (found := ID.findall(await text(back, "wait_for_tool_output"))):
                    pass
                (tmp_path / "go").touch()
                while "Completed" not in await text(back, "wait_for_tool_output"):
                    pass
            assert await text(back, "get_tool_output", {"id": found[0], "mode": "raw"}) == "never heard"


@pytest.mark.slow
async def test_vanished_clients_leave_no_processes(tmp_path: Path, tagged: Callable[[], int]) -> None:
    with served(tmp_path, gone_after=3) as proxy:
        async with proxy.client(ANN) as present:
            assert (await text(present, "pid")).isdecimal()
            for _ in range(20):
                await anyio.to_thread.run_sync(lambda: ByHand(proxy.url).text("pid"))
            assert tagged() > 1
            await until(lambda: tagged() == 1)  # of the client that has a stream open
            assert (await text(present, "pid")).isdecimal()


async def test_a_silent_client_of_the_newer_protocol_leaves_no_process(tmp_path: Path, tagged: Callable[[], int]) -> None:
    with served(tmp_path, stateless_gone_after=0.3) as proxy:
        async with proxy.client(ANN, "auto") as client:
            first = await text(client, "pid")
            await until(lambda: not tagged())
            assert await text(client, "pid") != first


async def test_the_servers_of_a_client_that_left_end_with_its_last_job(tmp_path: Path, tagged: Callable[[], int]) -> None:
    with served(tmp_path) as proxy:
        await leave_job(proxy, tmp_path / "go")
        assert tagged() == 1
        (tmp_path / "go").touch()
        await until(lambda: not tagged())


@pytest.mark.slow
async def test_a_job_without_a_limit_ends_some_time_after_its_client_left_and_says_so(
    tmp_path: Path, tagged: Callable[[], int]
) -> None:
    with served(tmp_path, {"toolTimeout": None}, max_job_seconds_alone=0.5) as proxy:
        id = await leave_job(proxy, tmp_path / "never")
        await until(lambda: not tagged())
        async with proxy.client(ANN) as client:
            answer = await text(client, "get_tool_output", {"id": id, "mode": "raw"})
        assert answer == "Tool failed: TimeoutError: not finished 0.5 s after the client that called it disconnected"


@pytest.mark.slow
async def test_a_jobs_own_limit_holds_after_its_client_left(tmp_path: Path, tagged: Callable[[], int]) -> None:
    with served(tmp_path, {"toolTimeout": 2}, max_job_seconds_alone=0.01) as proxy:
        id = await leave_job(proxy, tmp_path / "never")
        await until(lambda: not tagged())
        async with proxy.client(ANN) as client:
            answer = await text(client, "get_tool_output", {"id": id, "mode": "raw"})
        assert answer == "Tool failed: TimeoutError: not finished after 2 s (toolTimeout)"


@pytest.mark.slow
async def test_a_client_cannot_leave_jobs_behind_without_end(tmp_path: Path) -> None:
    with served(tmp_path) as proxy:
        async with proxy.client(ANN) as client, anyio.create_task_group() as group:
            for _ in range(MAX_LEFT_JOBS):
                group.start_soon(text, client, "wait", {"file": str(tmp_path / "go")})
        async with proxy.client(ANN) as client:
            refused = await client.call_tool("pid", {})
            assert (refused.is_error, refused.content[0].text) == (True, slow_tools.too_many_left_jobs(MAX_LEFT_JOBS))  # pyright: ignore
        async with proxy.client(BOB) as bob:
            assert (await text(bob, "pid")).isdecimal()
        (tmp_path / "go").touch()
        async with proxy.client(ANN) as client:
            while not (await text(client, "pid")).isdecimal():
                assert "Completed" in await text(client, "wait_for_tool_output")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_a_job_lost_with_the_proxy_was_interrupted(tmp_path: Path, how: int) -> None:
    first = Listening(tmp_path, "--set", "asyncTimeoutSecs=0.3")
    async with first.client(ANN) as client:
        id = ID.findall(await text(client, "wait", {"until": "never"}))[0]
        first.process.send_signal(how)
        first.process.wait(30)
    first.end()
    second = Listening(tmp_path)
    try:
        async with second.client(ANN) as client:
            asked = {"id": id, "mode": "raw"}
            assert await text(client, "get_tool_output", asked) == replies.tool_failure(slow_tools.INTERRUPTED)
            assert slow_tools.INTERRUPTED in await text(client, "tool_output", {"handle": id, "extract": "all"})
        async with second.client(BOB) as client:
            assert await text(client, "get_tool_output", asked) == f"Unknown tool ID: {id}"
    finally:
        second.end()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["hang up", signal.SIGTERM, signal.SIGKILL])
def test_a_job_over_stdio_lost_with_the_proxy_was_interrupted(tmp_path: Path, how: int | str) -> None:
    command = proxied(every(), "--set", f"storeDir={tmp_path}", "--set", "asyncTimeoutSecs=0.3")
    with Process(command) as wire:
        wire.hello()
        wire.stay()
        id = ID.findall(wire.text("wait", {"until": "never"}))[0]
        if isinstance(how, int):
            wire.process.send_signal(how)
        else:
            wire.hang_up()
        wire.process.wait(30)
    with Process(command) as wire:
        wire.hello()
        assert wire.text("get_tool_output", {"id": id, "mode": "raw"}) == replies.tool_failure(slow_tools.INTERRUPTED)


def pass_time(wire: Piped, seconds: float = 1.0) -> None:
    """Ask again and again, as the Python SDK may after a call."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        wire.result("tools/list")


@pytest.mark.parametrize("era", [pytest.param("legacy", marks=pytest.mark.slow), "modern"])
def test_the_first_call_over_stdio_is_not_answered_early(tmp_path: Path, era: str) -> None:
    with Piped([config(every())], tmp_path / "store", modern=era == "modern", settings=SOON) as wire:
        wire.hello()
        arguments = {"file": str(tmp_path / "go"), "then": "whole"}
        first = wire.begin("tools/call", {"name": "wait", "arguments": arguments, "_meta": {"progressToken": "p"}})
        assert wire.told("notifications/progress")["params"]["message"] == "warming up"
        pass_time(wire)
        (tmp_path / "go").touch()
        assert wire.answer(first)["result"]["content"] == [{"type": "text", "text": "whole"}]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_second_call_lets_the_first_be_answered_early(tmp_path: Path, era: str) -> None:
    with Piped([config(every())], tmp_path, modern=era == "modern", settings=SOON) as wire:
        wire.hello()
        first = wire.begin("tools/call", {"name": "wait", "arguments": {"until": "later"}})
        wire.call("pid")
        id = ID.findall(wire.answer(first)["result"]["content"][0]["text"])[0]
        wire.call("release", {"word": "later"})
        while "Completed" not in (told := wire.text("wait_for_tool_output")):
            assert id in told


@pytest.mark.slow
def test_the_answer_to_a_question_does_not_count_as_a_second_call(tmp_path: Path) -> None:
    with Piped([config(every())], tmp_path / "store", modern=True, settings=SOON) as wire:
        wire.hello()
        asked = wire.call("ask", {"requests": [FORM], "file": str(tmp_path / "go")})
        (key,) = asked["inputRequests"]
        again = {"inputResponses": {key: {"action": "decline"}}, "requestState": asked["requestState"]}
        resumed = wire.begin("tools/call", {"name": "ask", "arguments": {}, **again})
        pass_time(wire)
        (tmp_path / "go").touch()
        assert wire.answer(resumed)["result"]["content"][0]["text"] == '[{"action": "decline"}]'


@pytest.mark.slow
def test_the_first_call_over_stdio_ends_when_its_time_is_up(tmp_path: Path) -> None:
    with Piped([config(every())], tmp_path, settings={**SOON, "toolTimeout": 1}) as wire:
        wire.hello()
        assert wire.text("wait", {"until": "never"}) == "Tool failed: not finished after 1 s (toolTimeout)"
