"""Somebody else can write to the queue: workers run no code of theirs, and nothing but the tools they were given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tool_workers import Workers

from overspill import handles
from overspill.store.open import open_store
from overspill.task_queue.address import parse_address
from overspill.task_queue.payload import QueuedCall, encode_call

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


class Hostile:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.file}",)


async def put(queue: str, name: str, key: str, *args: Any, **named: Any) -> None:
    """As anybody can who has the queue's address and pydocket."""
    from docket import Docket  # noqa: PLC0415  # only where the package is

    async def placeholder(*args: Any, **named: Any) -> None: ...

    address = parse_address(queue)
    async with Docket(name=address.name, url=address.url) as docket:
        docket.register(placeholder, names=[name])
        await docket.add(name, key=key)(*args, **named)


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
