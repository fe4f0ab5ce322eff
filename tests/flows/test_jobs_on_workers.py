"""Slow tools on workers of a task engine: as if they ran here, but they outlive the process that called them."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import pytest
from store_servers import Relay
from tool_workers import Workers, count
from waiting import until

from overspill import Session
from overspill.store.open import open_store
from overspill.wording import replies, retrieval, slow_tools

VALUES = ["text", "", {"a": [1, None, "ü"]}, [1, 2], None, 3.5, True, [{"type": "text", "text": "one"}], "{{output:x}}"]
pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def ask(session: Session, id: str) -> str:
    return (await session.invoke("get_tool_output", {"id": id, "mode": "raw"})).text


async def begin(session: Session, folder: Path, tool: str = "slow", **args: str) -> str:
    """Start a job that ends when it may go on. Returns its id as soon as a worker runs it."""
    reply = await session.call(tool, {"folder": str(folder), **args})
    assert reply.job is not None
    await until(lambda: count(folder, "began"))
    return reply.job.id


@pytest.mark.promise("small-things-untouched")
async def test_a_quick_result_is_answered_in_the_same_call_and_is_what_the_tool_returned(workers: Workers):
    async def echo(value: object) -> object:
        return value

    async with workers.session() as session:
        for value in VALUES:
            there = await session.call("echo", {"value": value})
            here = await session.call("echo", {"value": value}, echo)
            assert (there.text, there.value, there.passed, there.is_error) == (here.text, here.value, here.passed, here.is_error)
            assert there.content == here.content


async def test_blocks_and_errors_come_back_as_they_are(workers: Workers):
    async with workers.session() as session:
        picture = await session.call("picture")
        assert [block["type"] for block in picture.content] == ["text", "image"]
        refused = await session.call("refuse", {"text": "not allowed"})
        assert (refused.text, refused.is_error) == ("not allowed", True)
        failed = await session.call("fail", {"text": "no route to host"})
        assert (failed.text, failed.is_error) == (replies.tool_failure("OSError: no route to host"), True)
        broken = await session.call("stream")
        assert "first second" in broken.text
        assert "broke off" in broken.text


async def test_a_large_result_is_stored_once_by_the_worker(workers: Workers):
    async with workers.session() as session:
        reply = await session.call("lines", {"count": 20_000})
        assert reply.kept is not None
        assert reply.kept.name in reply.text
        assert session.open(reply.kept.name).lines(20_000, 20_000) == "line 19999\n"
        assert [each.id for each in session.kept()] == [reply.kept.id]
        found = await session.invoke("tool_output", {"handle": reply.kept.name, "extract": "line 777"})
        assert "line 777" in found.text


async def test_a_call_that_was_answered_is_no_news_to_any_session_of_the_name(workers: Workers):
    async with workers.session() as one, workers.session() as two:
        for tool, args in (("echo", {"value": "small"}), ("lines", {"count": 20_000}), ("fail", {"text": "no route"})):
            await one.call(tool, args)
        for session in (one, two):
            assert session.notice() == ""
            assert (await session.invoke("wait_for_tool_output")).text == slow_tools.NONE_RUNNING


async def test_large_arguments_travel_through_the_store(workers: Workers):
    async with workers.session(toolResponseMaxBytes=1_000_000) as session:
        large = "x" * 200_000
        assert (await session.call("echo", {"value": large})).value == large


async def test_a_slow_call_goes_to_the_background_and_any_session_of_the_name_reads_it(workers: Workers):
    folder = workers.make_folder("job")
    async with workers.session(asyncTimeoutSecs=0.3) as one, workers.session() as two, workers.session("others") as stranger:
        id = await begin(one, folder, answer="late")
        assert await ask(two, id) == retrieval.not_ready()
        (folder / "go").touch()
        for session in (one, two):
            answer = (await session.invoke("wait_for_tool_output")).text
            assert answer == f"Completed tools:\n- slow (id: {id}, size: 4B)"
        assert await ask(one, id) == "late"
        assert await ask(two, id) == "late"
        assert "Unknown" in await ask(stranger, id)


@pytest.mark.promise("nothing-lost")
async def test_a_job_outlives_the_session_that_started_it(workers: Workers):
    folder = workers.make_folder("job")
    async with workers.session(asyncTimeoutSecs=0.3) as one:
        id = await begin(one, folder, answer="late")
    async with workers.session() as two:
        assert await ask(two, id) == retrieval.not_ready()
        (folder / "go").touch()
        assert id in (await two.invoke("wait_for_tool_output")).text
        assert await ask(two, id) == "late"


async def test_abort_reaches_the_worker(workers: Workers):
    folder = workers.make_folder("job")
    async with workers.session(asyncTimeoutSecs=0.3) as one:
        await begin(one, folder)
        await one.abort()
        await until(lambda: (folder / "cancelled").exists())


async def test_abort_from_another_process_reaches_the_worker_too(workers: Workers):
    folder = workers.make_folder("job")
    async with workers.session(asyncTimeoutSecs=0.3) as one, workers.session() as two:
        id = await begin(one, folder)
        assert [job.id for job in two.running()] == [id]
        await two.abort()
        await until(lambda: (folder / "cancelled").exists())
        assert "failed" in (await one.invoke("wait_for_tool_output")).text


async def test_a_call_that_is_cancelled_before_it_was_answered_is_cancelled_there_too(workers: Workers):
    folder = workers.make_folder("job")
    async with workers.session() as one, anyio.create_task_group() as group:
        group.start_soon(one.call, "slow", {"folder": str(folder)})
        await until(lambda: count(folder, "began"))
        group.cancel_scope.cancel()
    await until(lambda: (folder / "cancelled").exists())


async def test_a_tool_that_is_not_repeatable_is_reported_when_its_worker_is_killed(workers: Workers):
    folder = workers.make_folder("job")
    async with workers.session(asyncTimeoutSecs=0.3) as one:
        id = await begin(one, folder)
        workers.started[0].send_signal(signal.SIGKILL)
        workers.started[0].wait()
        assert "interrupted" in (await one.invoke("wait_for_tool_output")).text
        assert await ask(one, id) == replies.tool_failure(slow_tools.INTERRUPTED)
        workers.start()
        (folder / "go").touch()
        assert (await one.call("echo", {"value": "next"}, background=False)).text == "next"
        assert count(folder, "began") == 1


async def test_a_repeatable_tool_runs_again_on_another_worker_when_its_own_is_killed(workers: Workers):
    folder = workers.make_folder("job")
    async with workers.session(asyncTimeoutSecs=0.3) as one:
        id = await begin(one, folder, "safe", answer="second")
        workers.start()
        workers.started[0].send_signal(signal.SIGKILL)
        workers.started[0].wait()
        await until(lambda: count(folder, "began") == 2)
        assert await ask(one, id) == retrieval.not_ready()
        (folder / "go").touch()
        assert id in (await one.invoke("wait_for_tool_output")).text
        assert await ask(one, id) == "second"


async def test_a_tool_that_kills_its_workers_is_not_repeated_for_ever(workers: Workers):
    folder = workers.make_folder("job")
    async with workers.session(asyncTimeoutSecs=0.3) as one:
        reply = await one.call("deadly", {"folder": str(folder)})
        assert reply.job is not None
        for _ in range(2):
            workers.started[-1].wait(30)
            workers.start(lives=False)
        workers.started[-1].wait(30)
        workers.start()
        assert "interrupted" in (await one.invoke("wait_for_tool_output")).text
        assert count(folder, "began") == 3
        assert workers.started[-1].poll() is None


async def test_a_limit_holds_over_all_workers(workers: Workers):
    workers.start()
    folders = [workers.make_folder(f"job-{number}") for number in range(4)]
    async with workers.session(asyncTimeoutSecs=0.1) as one:
        for folder in folders:
            await one.call("alone", {"folder": str(folder)})
        for done in range(4):
            await until(lambda: sum(count(each, "began") for each in folders) == done + 1)  # noqa: B023
            assert sum(count(each, "ended") for each in folders) == done
            for folder in folders:
                if count(folder, "began"):
                    (folder / "go").touch()
            await until(lambda: sum(count(each, "ended") for each in folders) >= done + 1)  # noqa: B023
        while "Completed" in (await one.invoke("wait_for_tool_output")).text:
            pass
        assert one.running() == []


async def test_a_worker_that_is_told_to_stop_finishes_its_calls(workers: Workers):
    folder = workers.make_folder("job")
    async with workers.session(asyncTimeoutSecs=0.3) as one:
        id = await begin(one, folder, answer="finished")
        workers.started[0].send_signal(signal.SIGTERM)
        (folder / "go").touch()
        assert workers.started[0].wait(30) == 0
        await one.invoke("wait_for_tool_output")
        assert await ask(one, id) == "finished"


async def test_a_worker_whose_time_is_up_hands_repeatable_calls_over(tmp_path: Path, queue_url: str):
    workers = Workers(tmp_path, queue_url, str(tmp_path / "store"))
    try:
        first = workers.start(grace=0.1)
        folder = workers.make_folder("job")
        async with workers.session(asyncTimeoutSecs=0.3) as one:
            id = await begin(one, folder, "safe", answer="second")
            workers.start()
            first.send_signal(signal.SIGTERM)
            assert first.wait(30) == 0
            await until(lambda: count(folder, "began") == 2)
            (folder / "go").touch()
            await one.invoke("wait_for_tool_output")
            assert await ask(one, id) == "second"
    finally:
        workers.end()


async def test_a_tool_ends_as_usual_while_the_queue_is_away_from_its_worker(tmp_path: Path, queue_url: str):
    server = urlsplit(queue_url)
    relay = Relay(socket.AF_INET, (server.hostname, server.port))
    workers = Workers(tmp_path, queue_url.replace(f":{server.port}/", f":{relay.port}/"), str(tmp_path / "store"))
    try:
        workers.start()
        workers.queue = queue_url
        folder = workers.make_folder("job")
        async with workers.session(asyncTimeoutSecs=0.3) as one:
            id = await begin(one, folder, answer="finished")
            relay.refuse()
            await until(lambda: relay.refused > 5)  # by then, the worker has also asked whether the job is still wanted
            assert not (folder / "cancelled").exists()
            (folder / "go").touch()
            assert id in (await one.invoke("wait_for_tool_output")).text
            assert await ask(one, id) == "finished"
    finally:
        workers.end()


async def test_a_tool_that_no_worker_has_is_named_with_those_they_have(workers: Workers):
    async with workers.session() as session:
        reply = await session.call("crawl", {})
        assert reply.is_error
        assert "no worker has a tool named crawl" in reply.text
        assert "echo" in reply.text


async def test_a_session_without_a_name_can_use_workers_too(workers: Workers):
    async with Session(store=open_store(workers.store), jobs=workers.queue) as session:
        assert (await session.call("echo", {"value": "text"})).text == "text"
