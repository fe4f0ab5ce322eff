"""A whole turn: every call has an answer, and the model is only asked again when there is something new for it."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from extras import OFFERED

from overspill import Reply, Session, Settings, ToolCall
from overspill.models.protocol import Request, Response
from overspill.record.events import TurnOpened
from overspill.store.memory import MemoryStore
from overspill.testing import ScriptedModel, SlowTool

pytestmark = pytest.mark.anyio

HANGS = 20.0


@asynccontextmanager
async def session(**settings: Any) -> AsyncIterator[Session]:
    with anyio.fail_after(HANGS):
        async with Session(Settings(**{"asyncTimeoutSecs": 0.02, **settings}), store=MemoryStore()) as s:
            yield s


def calls(*names: str) -> list[ToolCall]:
    return [ToolCall(str(n), name) for n, name in enumerate(names)]


async def test_an_exception_of_the_host_is_raised_as_it_is_and_the_other_calls_end():
    never = SlowTool()

    async def answer(call: ToolCall) -> Reply:
        if call.name == "slow":
            return await never()
        await never.begun()
        raise LookupError("no such desk")

    async with session() as s:
        with pytest.raises(LookupError, match="no such desk"):
            await s.turn(calls("slow", "broken"), answer=answer)
    assert never.cancelled == 1


@pytest.mark.parametrize("answering", [False, True])
async def test_of_two_turns_side_by_side_each_extracts_with_its_own_model(answering: bool):
    asked: dict[str, list[str]] = {"test/a": [], "test/b": []}
    first_asked, second_done = anyio.Event(), anyio.Event()

    def model(name: str) -> ScriptedModel:
        def reply(request: Request) -> Response:
            asked[name].append("\n".join(str(message) for message in request.messages))
            return Response("no report", model=name)

        return ScriptedModel(reply, name=name)

    async with Session(Settings(), store=MemoryStore(), models={name: model(name) for name in asked}) as s:
        handles = {word: (await s.keep(f"{word} " * 50)).handle for word in ("alpha", "beta")}

        async def turn(name: str, word: str, before: anyio.Event, after: anyio.Event) -> None:
            async def answer(call: ToolCall) -> Reply:
                before.set()
                await after.wait()
                return await s.invoke(call.name, call.args)

            async def hold(call: ToolCall) -> str:
                before.set()
                await after.wait()
                return (await s.invoke("tool_output", arguments)).text

            arguments = {"handle": handles[word], "extract": "which word", "mode": "full-chunked"}
            call = ToolCall("1", "tool_output" if answering else "hold", arguments)
            await s.turn([call], hold, model=name, answer=answer if answering else None)

        ready = anyio.Event()
        ready.set()
        async with anyio.create_task_group() as group:
            group.start_soon(turn, "test/a", "alpha", first_asked, second_done)
            await first_asked.wait()
            await turn("test/b", "beta", anyio.Event(), ready)
            second_done.set()
    assert asked["test/a"]
    assert asked["test/b"]
    assert not any("beta" in request for request in asked["test/a"])
    assert not any("alpha" in request for request in asked["test/b"])


async def test_a_turn_with_one_output_does_not_wait_for_the_slow_calls():
    slow = SlowTool()

    async def execute(call: ToolCall) -> str:
        return await slow() if call.name == "slow" else "quick"

    async with session(asyncTimeoutSecs=0.1) as s:
        replies = await s.turn(calls("slow", "quick"), execute)
        assert [reply.new for reply in replies] == [False, True]
        assert "### Running (1)" in s.notice()


async def test_a_turn_whose_calls_all_went_to_the_background_ends_when_the_first_completes():
    tools = {"one": SlowTool("1"), "two": SlowTool("2")}
    ended = anyio.Event()
    async with session() as s:

        async def turn() -> None:
            replies = await s.turn(calls("one", "two"), lambda call: tools[call.name]())
            assert [(reply.new, reply.text) for reply in replies[1:]] == [(True, "2")]
            assert (replies[0].new, replies[1].job.state) == (False, "ready")
            ended.set()

        async with anyio.create_task_group() as group:
            group.start_soon(turn)
            while "### Running (2)" not in s.notice():
                await anyio.wait_all_tasks_blocked()
            await anyio.wait_all_tasks_blocked()
            assert not ended.is_set()
            tools["two"].release()
        notice = s.notice()
        assert "### Running (1)" in notice
        assert "### Ready (1)\n- 1 already retrieved." in notice  # the model has the output and need not fetch it
        assert await take_news(s) == "Still running"


async def take_news(s: Session) -> str:
    """How an answer of `wait_for_tool_output` begins: a job whose output was delivered is no news."""
    with anyio.move_on_after(0.05):
        await s.invoke("wait_for_tool_output")
        return "news"
    return "Still running"


@pytest.mark.parametrize("preset", ["overspill", "tool_output", "artifacts", "slow"])
@pytest.mark.slow
async def test_a_turn_that_waited_delivers_a_large_output_as_if_it_had_been_quick(preset: str):
    slow = SlowTool("line\n" * 20_000)
    async with session(preset=preset, **{"async": True}) as s:

        def execute(call: ToolCall) -> Any:
            return slow() if call.name == "slow" else "line\n" * 20_000

        async with anyio.create_task_group() as group:

            async def turn() -> None:
                delivered.extend(await s.turn(calls("slow"), execute))

            delivered: list[Reply] = []
            group.start_soon(turn)
            while "### Running (1)" not in s.notice():
                await anyio.wait_all_tasks_blocked()
            slow.release()
        (late,), (quick,) = delivered, await s.turn(calls("quick"), execute)
        assert late.kept is not None
        assert quick.kept is not None
        assert late.new
        shown, same = late.text.replace("slow", "quick"), quick.text
        for part in ("handle", "artifact_id", "name"):
            assert getattr(late.kept, part) in late.text or getattr(quick.kept, part) not in quick.text
            shown = shown.replace(getattr(late.kept, part), part)
            same = same.replace(getattr(quick.kept, part), part)
        assert re.sub(r"(output|preview|data) \w+", "N", shown) == re.sub(r"(output|preview|data) \w+", "N", same)


async def test_a_turn_that_waited_delivers_a_failure():
    slow = SlowTool(ValueError("no licence"))
    async with session() as s, anyio.create_task_group() as group:

        async def turn() -> None:
            (reply,) = await s.turn(calls("slow"), lambda call: slow())
            assert (reply.text, reply.is_error, reply.new) == ("Tool failed: ValueError: no licence", True, True)
            assert (reply.job.state, s.notice().count("### Failed (1)")) == ("failed", 1)

        group.start_soon(turn)
        while "### Running (1)" not in s.notice():
            await anyio.wait_all_tasks_blocked()
        slow.release()


async def test_a_failure_and_a_handle_are_news():
    def fail() -> None:
        raise ValueError("bad")

    tools = {"fail": fail, "large": lambda: "x" * 20_000}
    async with session(asyncTimeoutSecs=HANGS) as s:
        replies = await s.turn(calls("fail", "large"), lambda call: tools[call.name]())
    assert [(reply.is_error, reply.new) for reply in replies] == [(True, True), (False, True)]


async def test_an_unknown_tool_is_an_answer():
    async with session() as s:
        (reply,) = await s.turn(calls("nobody"))
    assert (reply.text, reply.is_error) == (f"Unknown tool 'nobody'. Known tools: {', '.join(OFFERED)}.", True)


async def test_a_cancelled_turn_cancels_its_calls():
    slow = SlowTool()
    async with session(asyncTimeoutSecs=HANGS) as s:
        async with anyio.create_task_group() as group:
            group.start_soon(s.turn, calls("slow"), lambda call: slow())
            await slow.begun()
            group.cancel_scope.cancel()
        assert s.notice() == ""
    assert slow.cancelled == 1


async def test_a_host_may_answer_every_call_itself():
    async with session(asyncTimeoutSecs=HANGS) as s:

        async def answer(call: ToolCall):
            if s.owns(call.name):
                return await s.invoke(call.name, call.args, id=call.id)
            return await s.call(call.name, call.args, lambda: f"{call.name} done", id=call.id)

        replies = await s.turn(calls("a", "wait_for_tool_output"), answer=answer)
        assert [reply.text for reply in replies] == ["a done", "No async tools running."]
        assert sorted(op.attributes["call"] for op in s.op_tree().children) == ["0", "1"]


async def test_a_call_may_go_to_the_background_from_the_beginning():
    slow = SlowTool("late")
    async with session(asyncTimeoutSecs=HANGS) as s:
        reply = await s.call("slow", {}, slow, background="now")
        assert (reply.new, reply.job.state) == (False, "queued")
        assert s.options().splitlines()[2] == '2. Wait for running tools using get_tool_output(id, mode="wait")'
        slow.release()
        await s.invoke("wait_for_tool_output", {})
        assert (await s.invoke("get_tool_output", {"id": reply.job.id, "mode": "raw"})).text == "late"
        assert s.counters.calls == 1


async def test_a_host_may_put_its_own_doings_on_record():
    async with session() as s:
        s.note(TurnOpened(1, 1, 3))
        assert [(op.kind, op.name) for op in s.op_tree().children] == [("turn", "1")]


@pytest.mark.parametrize(
    ("written", "args"), [('{"host": "a"}', {"host": "a"}), ("", {}), (" \n", {}), ('{"n": 1e999}', {"n": float("inf")})]
)
async def test_arguments_may_be_the_json_that_the_model_wrote(written: Any, args: Any):
    got: list[Any] = []

    async def execute(call: ToolCall) -> str:
        got.append(call.args)
        return "done"

    async with session() as s:
        assert [reply.text for reply in await s.turn([ToolCall("1", "ping", written)], execute)] == ["done"]
    assert got == [args]


@pytest.mark.parametrize("written", ['{"host": ', "[1]", '"a"', "nonsense", "[" * 100_000, "null"])
async def test_a_model_is_told_if_its_arguments_are_no_json_object(written: Any):
    async with session() as s:
        replies = await s.turn([ToolCall("1", "ping", written), ToolCall("2", "get_tool_output", written)], lambda call: "never")
    assert all(reply.is_error and "Call it again with valid JSON." in reply.text for reply in replies)


async def test_a_retrieval_tool_reads_the_json_that_the_model_wrote():
    async with session() as s:
        kept = await s.keep("needle", "t")
        arguments: Any = f'{{"id": "{kept.name}", "mode": "raw"}}'
        assert "needle" in (await s.invoke("get_tool_output", arguments)).text
