"""Retrieval tools under a prefix: every text that a model reads calls them by the names it knows."""

from __future__ import annotations

import re

import anyio
import anyio.lowlevel
import pytest

from overspill import Reply, Session, Settings, SyncSession, ToolCall
from overspill.retrieval.definitions import TOOLS
from overspill.settings.keys import PresetName

PREFIX = "mcp__overspill__"
BIG = "\n".join(f'{{"n": {number}, "text": "row {number}"}}' for number in range(20_000))
BARE = re.compile(rf"(?<!{PREFIX})\b({'|'.join(TOOLS)})\(")


def check_names(text: str) -> None:
    assert not BARE.search(text), text


def test_the_tools_are_offered_and_owned_under_the_prefix():
    session = Session(tool_prefix=PREFIX)
    names = [tool["name"] for tool in session.tools()]
    assert names
    assert all(session.owns(name) and name.startswith(PREFIX) for name in names)
    assert not session.owns("tool_output")


def test_tools_are_the_same_before_during_and_after_a_session():
    session = SyncSession(tool_prefix=PREFIX)
    before = session.tools("anthropic")
    with session:
        session.call("dump", {}, lambda: BIG)
        assert session.tools("anthropic") == before
    assert session.tools("anthropic") == before


@pytest.mark.parametrize("preset", ["overspill", "tool_output", "artifacts", "slow"])
@pytest.mark.slow
async def test_replies_and_answers_use_the_prefix(preset: PresetName):
    async with Session(Settings(preset=preset), tool_prefix=PREFIX) as session:
        reply = await session.call("dump", {}, lambda: BIG)
        assert reply.kept is not None
        assert PREFIX in reply.text
        check_names(reply.text)
        check_names((await session.call("dump", {}, lambda: BIG)).text)  # the same again
        id = reply.kept.artifact_id
        for name, args in (
            ("get_tool_output", {"id": id, "mode": "grep", "pattern": "row"}),
            ("get_tool_output", {"id": id, "mode": "slice", "slice": {"lines": "1-20000"}}),
            ("get_tool_output", {"id": id, "mode": "query", "query": "[*].n"}),
            ("get_tool_output", {"id": id, "mode": "nonsense"}),
            ("get_artifact", {"id": id}),
            ("get_artifact", {"id": id, "lines": "1-20000", "bytes": "0-10"}),
            ("unknown", {}),
        ):
            check_names((await session.invoke(PREFIX + name, args)).text)
            check_names((await session.invoke(name, args)).text)


async def test_continuations_can_be_called_as_written():
    async with Session(tool_prefix=PREFIX) as session:
        reply = await session.call("dump", {}, lambda: BIG)
        assert reply.kept is not None
        answer = await session.invoke("get_tool_output", {"id": reply.kept.name, "mode": "grep", "pattern": "row"})
        assert f"{PREFIX}get_tool_output(" in answer.text


async def test_slow_tools_use_the_prefix():
    done = anyio.Event()

    async def slow() -> str:
        await done.wait()
        return "done"

    for notice in (True, False):
        async with Session(Settings(asyncTimeoutSecs=0.01), tool_prefix=PREFIX, notice=notice) as session:
            reply = await session.call("slow", {}, slow)
            assert reply.job is not None
            assert PREFIX in reply.text
            early = await session.invoke(f"{PREFIX}get_tool_output", {"id": reply.job.id, "mode": "raw"})
            for text in (reply.text, early.text, session.notice(), session.options()):
                assert PREFIX in text
                check_names(text)


async def test_each_session_words_its_own_names():
    async def inner() -> str:
        async with Session(tool_prefix="inner_") as other:
            return (await other.call("dump", {}, lambda: BIG)).text

    async with Session(tool_prefix=PREFIX) as session:
        first, second = await session.turn(
            [ToolCall("1", "inner"), ToolCall("2", "dump")], lambda call: inner() if call.id == "1" else BIG
        )
        assert "inner_get_tool_output(" in first.text
        assert f"{PREFIX}get_tool_output(" in second.text


@pytest.mark.parametrize("name", ["get_tool_output", "tool_output", "get_artifact"])
async def test_a_result_that_was_read_is_not_announced_again(name: str):
    done = anyio.Event()

    async def slow() -> str:
        await done.wait()
        return BIG

    async with Session(Settings(asyncTimeoutSecs=0.01), notice=False) as session:
        reply = await session.call("slow", {}, slow)
        assert reply.job is not None
        done.set()
        await session.stop()
        args = {
            "get_tool_output": {"id": reply.job.id, "mode": "grep", "pattern": "row 7"},
            "tool_output": {"handle": reply.job.id, "extract": "row 7"},
            "get_artifact": {"id": reply.job.id, "lines": "1-2"},
        }
        assert "row" in (await session.invoke(name, args[name])).text
        assert session.news() == ""
        assert (await session.invoke("wait_for_tool_output")).text == "No async tools running."


async def test_a_result_that_becomes_ready_during_the_turn_is_delivered_with_it():
    done = anyio.Event()

    async def slow() -> str:
        await done.wait()
        return "the slow result"

    async with Session(Settings(asyncTimeoutSecs=0.01)) as session:

        async def patient() -> str:
            while not session.running():  # until the other call was answered with its id
                await anyio.lowlevel.checkpoint()
            done.set()
            while session.running():
                await anyio.lowlevel.checkpoint()
            return "patient"

        async def answer(call: ToolCall) -> Reply:
            is_slow = call.name == "slow"
            return await session.call(call.name, {}, slow if is_slow else patient, background=is_slow)

        replies = await session.turn([ToolCall("1", "slow"), ToolCall("2", "patient")], answer=answer)
        assert [reply.text for reply in replies] == ["the slow result", "patient"]
        assert session.news() == ""
