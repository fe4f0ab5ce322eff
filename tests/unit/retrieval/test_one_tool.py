"""The one tool that the default preset offers does everything: it asks, reads exactly and waits."""

from __future__ import annotations

import ast
import json
import re
from copy import deepcopy
from functools import partial
from typing import Any

import anyio
import pytest

from overspill import Session, Settings
from overspill.store.memory import MemoryStore
from overspill.testing import SlowTool
from overspill.wording import retrieval

LOG = "".join(f"{number:05} {'ERROR payments-7 timed out' if number == 2500 else 'ok'}\n" for number in range(5000))
ROWS = json.dumps({"rows": [{"id": number, "state": "open" if number % 3 else "done"} for number in range(3000)]})


def opened(race: float = 60, **values: Any) -> Session:
    """`race`: in seconds. Only a short one lets a slow tool go on in the background, also a quick tool on a busy machine."""
    return Session(Settings(asyncTimeoutSecs=race, **values), store=MemoryStore(), notice=False)


async def get(session: Session, id: str, mode: str, **more: Any) -> str:
    return (await session.invoke("get_tool_output", {"id": id, "mode": mode, **more})).text


def calls_in(text: str) -> list[dict[str, Any]]:
    """The arguments of the calls that our words name, those after `or with` included."""
    made = list[dict[str, Any]]()
    for written, others in re.findall(r'get_tool_output\((id="[^\n]*?)\)(?:, or with ([^\n]*))?(?:$|\]|\.)', text, re.MULTILINE):
        for arguments in (written, *([others] if others else [])):
            call = ast.parse(f"f({arguments})".replace(" from=", " from_="), mode="eval").body
            assert isinstance(call, ast.Call)
            made.append({str(each.arg).rstrip("_"): ast.literal_eval(each.value) for each in call.keywords})
    return made


async def test_a_question_is_answered_as_by_the_tool_for_questions():
    async with opened() as session:
        reply = await session.call("read", {}, lambda: LOG)
        assert reply.kept is not None
        asked = await get(session, reply.kept.name, "ask", query="which service timed out")
        same = await session.invoke("tool_output", {"handle": reply.kept.name, "extract": "which service timed out"})
        assert "ERROR payments-7 timed out" in asked
        assert re.sub(r"\d{6}\]", "]", asked) == re.sub(r"\d{6}\]", "]", same.text)
        assert await get(session, reply.kept.name, "ask") == "Query required for ask mode."


async def test_waiting_answers_what_the_call_would_have_answered():
    small, large = SlowTool("the whole answer"), SlowTool(LOG)
    async with opened(0.02) as session:
        for tool, begins in ((small, "the whole answer"), (large, "Tool output is too large (")):
            reply = await session.call("fetch", {}, tool)
            assert reply.job is not None
            assert f'Wait for it with get_tool_output(id="{reply.job.id}", mode="wait").' in reply.text
            assert await get(session, reply.job.id, "ask", query="what") == retrieval.not_ready()
            tool.release()
            answer = await get(session, reply.job.id, "wait")
            assert answer.startswith(begins)
            assert await get(session, reply.job.id, "wait") == answer or begins != "the whole answer"
        assert "levels:" in answer or "Next: get_tool_output(" in answer


async def test_waiting_for_a_tool_that_fails_says_so():
    tool = SlowTool(ValueError("no such host"))
    async with opened(0.02) as session:
        reply = await session.call("fetch", {}, tool)
        assert reply.job is not None
        tool.release()
        assert await get(session, reply.job.id, "wait") == "Tool failed: ValueError: no such host"


async def test_waiting_ends_when_another_tool_completes_and_when_the_time_is_up():
    async with opened(0.02, waitMaxSecs=0.05) as session:
        slow, other = SlowTool("late"), SlowTool("early")
        waited, early = await session.call("slow", {}, slow), await session.call("other", {}, other)
        assert waited.job is not None
        assert early.job is not None
        other.release()
        assert await get(session, early.job.id, "wait") == "early"
        assert re.fullmatch(
            rf"Still running:\n- slow \(id: {waited.job.id}, running \d+\.\ds\)", await get(session, waited.job.id, "wait")
        )
    async with opened(0.02) as session:
        slow, other = SlowTool("late"), SlowTool("early")
        waited, early = await session.call("slow", {}, slow), await session.call("other", {}, other)
        assert waited.job is not None
        assert early.job is not None
        with anyio.fail_after(20):
            other.release()
            told = await get(session, waited.job.id, "wait")
        assert told == f"Completed tools:\n- other (id: {early.job.id}, size: 5B)"


@pytest.mark.promise("nothing-lost")
async def test_every_call_that_a_reply_names_can_be_made_with_what_is_offered():
    async with opened(answerMaxBytes=2_000) as session:
        (offered,) = session.tools("mcp")
        schema = offered["inputSchema"]
        named = list[dict[str, Any]]()
        for content in (LOG, ROWS, "x" * 30_000, b"\x89PNG\r\n\x1a\n" + bytes(20_000), b"\x1f\x8b" + bytes(20_000)):
            read = partial(deepcopy, content)
            reply = await session.call("read", {}, read)
            assert reply.kept is not None
            assert offered["name"] == "get_tool_output"
            answers = [reply.text]
            for mode, more in (
                ("raw", {}),
                ("slice", {"slice": {"start": 0}}),
                ("slice", {"slice": {"lines": "1-9999"}}),
                ("grep", {"pattern": "."}),
                ("query", {"query": "rows"}),
                ("ask", {"query": "payments"}),
            ):
                answers.append(await get(session, reply.kept.name, mode, **more))
            repeated = await session.call("read", {}, read)
            named += [call for answer in (*answers, repeated.text) for call in calls_in(answer)]
        modes = {call["mode"] for call in named if "mode" in call}
        assert modes >= {"ask", "slice", "grep", "query"}
        for call in named:
            assert call.keys() <= schema["properties"].keys()
            assert call.get("mode", "raw") in schema["properties"]["mode"]["enum"]


async def test_presets_that_follow_a_document_name_the_tool_that_waits():
    async with opened(0.02, preset="slow") as session:
        reply = await session.call("fetch", {}, SlowTool("x"))
        assert reply.job is not None
        assert reply.text.endswith(f'Call wait_for_tool_output(), then get_tool_output("{reply.job.id}", mode).')
        assert await get(session, reply.job.id, "raw") == "Tool not ready. Use wait_for_tool_output."


async def test_a_pattern_may_come_as_the_query():
    async with opened() as session:
        kept = await session.keep(LOG)
        assert "ERROR payments-7" in await get(session, kept.name, "grep", query="payments-7")
