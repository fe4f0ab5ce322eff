"""Somebody else can write to the queue: workers run no code of theirs, and nothing but the tools they were given."""

from __future__ import annotations

import os
import pickle
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tool_workers import Workers

from overspill import handles
from overspill.store.open import open_store
from overspill.task_queue.address import parse_address
from overspill.task_queue.payload import QueuedCall, encode_call

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


class Hostile:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.file}",)


def open_docket(queue: str) -> AbstractAsyncContextManager[Any]:
    """As anybody can who has the queue's address and pydocket."""
    from docket import Docket  # noqa: PLC0415  # only where the package is

    address = parse_address(queue)
    return Docket(name=address.name, url=address.url)


async def put(queue: str, name: str, key: str, *args: Any, **named: Any) -> None:
    async def placeholder(*args: Any, **named: Any) -> None: ...

    async with open_docket(queue) as docket:
        docket.register(placeholder, names=[name])
        await docket.add(name, key=key)(*args, **named)


async def wait_until_empty(docket: Any, redis: Any) -> None:
    with anyio.fail_after(60):
        while await redis.xlen(docket.stream_key):  # noqa: ASYNC110  # another process takes them
            await anyio.sleep(0.02)


async def test_messages_of_others_run_no_code_and_stop_no_worker(workers: Workers, tmp_path: Path):
    owned = tmp_path / "owned"
    await put(workers.queue, "overspill:echo", handles.new(), Hostile(owned))
    await put(workers.queue, "overspill:echo", handles.new(), "", more=Hostile(owned))
    await put(workers.queue, "anything", handles.new(), Hostile(owned))
    await put(workers.queue, "sleep", handles.new(), 600)  # a task that comes with pydocket
    await put(workers.queue, "overspill:echo", "not-an-id", "{}")
    await put(workers.queue, "overspill:echo", handles.new(), "[" * 100_000)
    async with workers.session() as session:
        assert (await session.call("echo", {"value": "still here"})).text == "still here"
    assert not owned.exists()
    assert workers.started[0].poll() is None


PLAIN = {
    "key": "a key",
    "when": "2026-01-01T00:00:00+00:00",
    "function": "overspill:echo",
    "args": pickle.dumps(("{}",)),
    "kwargs": pickle.dumps({}),
    "attempt": "1",
}
MALFORMED: list[dict[str, Any]] = [
    {"nothing": "of it"},
    *({name: value for name, value in PLAIN.items() if name != left_out} for left_out in PLAIN),
    *({**PLAIN, name: b"\xff\xfe"} for name in PLAIN),
    {**PLAIN, "when": "never"},
    {**PLAIN, "when": "0001-01-01T00:00:00"},
    {**PLAIN, "attempt": "x"},
    {**PLAIN, "attempt": "9" * 5_000},
    {**PLAIN, "attempt": "-1"},
    {**PLAIN, "generation": "x"},
    {**PLAIN, "args": pickle.dumps(5)},
    {**PLAIN, "args": pickle.dumps({})},
    {**PLAIN, "args": pickle.dumps(([],))},
    {**PLAIN, "kwargs": pickle.dumps(5)},
    {**PLAIN, "kwargs": pickle.dumps(())},
    {**PLAIN, "kwargs": pickle.dumps({5: 5})},
    {**PLAIN, "more": "x" * 2_000_000},
]


async def test_malformed_messages_are_logged_once_and_taken_out_of_the_queue(workers: Workers, capfd: pytest.CaptureFixture[str]):
    workers.end()
    worker = workers.start()
    async with open_docket(workers.queue) as docket, docket.redis() as redis:
        for message in MALFORMED:
            await redis.xadd(docket.stream_key, message)
        async with workers.session() as session:
            assert (await session.call("echo", {"value": "still here"})).text == "still here"
            await wait_until_empty(docket, redis)
        assert (await redis.xpending(docket.stream_key, docket.worker_group_name))["pending"] == 0
    assert worker.poll() is None
    assert capfd.readouterr().err.count("Refused a message from the queue") == len(MALFORMED)


async def test_what_others_wrote_about_jobs_and_workers_stops_no_worker(workers: Workers):
    async with open_docket(workers.queue) as docket, docket.redis() as redis:
        await redis.zadd(docket.workers_set, {b"\xff": time.time()})
        for name, value in (("state", "bogus"), ("state", b"\xff"), ("started_at", "never"), ("completed_at", "never")):
            call = QueuedCall(handles.new(), "team", "echo", {"value": "forged"})
            await redis.hset(docket.runs_key(call.job), mapping={name: value})
            await redis.xadd(docket.stream_key, {**PLAIN, "key": call.job, "args": pickle.dumps((encode_call(call),))})
        workers.start(lives=False)
        await wait_until_empty(docket, redis)
        await redis.zrem(docket.workers_set, b"\xff")
        async with workers.session() as session:
            assert (await session.call("echo", {"value": "still here"})).text == "still here"
    assert [process.poll() for process in workers.started] == [None, None]


async def test_malformed_strikes_keep_no_worker_from_starting(workers: Workers):
    deep = b"\x80\x04)" + b"\x85" * 500_000 + b"."
    async with open_docket(workers.queue) as docket, docket.redis() as redis:
        await redis.xadd(docket.strike_list.strike_key, {"direction": b"\xff"})
        strike = {"direction": "strike", "function": "overspill:echo", "parameter": "payload", "operator": "=="}
        await redis.xadd(docket.strike_list.strike_key, {**strike, "value": deep})
    workers.end()
    workers.start()
    async with workers.session() as session:
        assert (await session.call("echo", {"value": "still here"})).text == "still here"


async def test_a_message_under_another_jobs_key_or_tool_is_refused(workers: Workers):
    store = open_store(workers.store)
    for tool, key in (("echo", handles.new()), ("lines", "")):
        call = QueuedCall(handles.new(), "team", tool, {"value": "forged"})
        await put(workers.queue, "overspill:echo", key or call.job, encode_call(call))
        async with workers.session() as session:
            await session.call("echo", {"value": "after it"})
            assert "forged" not in str(session.kept())
        assert call.job not in {label.session for label in store.shelves()}


async def test_arguments_of_another_family_cannot_be_read(workers: Workers):
    async with workers.session("others") as others:
        secret = await others.keep('{"value": "secret"}', "arguments")
        call = QueuedCall(handles.new(), "team", "echo", args_in=secret.handle)
        await put(workers.queue, "overspill:echo", call.job, encode_call(call))
        async with workers.session() as session:
            await session.call("echo", {"value": "after it"})
            answer = (await session.invoke("get_tool_output", {"id": handles.artifact_id(call.job), "mode": "raw"})).text
        assert "are gone" in answer
        assert "secret" not in answer
