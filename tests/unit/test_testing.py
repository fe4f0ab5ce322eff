from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from overspill.models.protocol import Message, Model, ModelError, Request, Response, Usage
from overspill.testing import RecordingModel, ReplayingModel, ScriptedModel, ScriptExhausted, SlowTool
from overspill.types import ToolCall


def asking(text: str) -> Request:
    return Request("sys", (Message("user", text),))


@pytest.mark.anyio
async def test_a_script_is_followed_in_order_and_requests_are_remembered() -> None:
    call = ToolCall("1", "Grep", {"pattern": "x"})
    whole = Response("whole", usage=Usage(1, 2), model="other/m")
    model = ScriptedModel(["text", call, [call, call], whole], name="test/m", context_window=9, max_output_tokens=3)
    replies = [await model.ask(asking(str(n))) for n in range(4)]
    assert replies == [
        Response("text", model="test/m"),
        Response("", (call,), model="test/m"),
        Response("", (call, call), model="test/m"),
        whole,
    ]
    assert model.requests == [asking(str(n)) for n in range(4)]
    assert (model.name, model.context_window, model.max_output_tokens) == ("test/m", 9, 3)


@pytest.mark.anyio
async def test_a_scripted_exception_is_raised() -> None:
    with pytest.raises(ModelError, match="down"):
        await ScriptedModel([ModelError("down", is_transient=True)]).ask(asking("?"))


@pytest.mark.anyio
async def test_a_function_answers_by_the_request() -> None:
    model = ScriptedModel(lambda request: request.messages[-1].text.upper())
    assert (await model.ask(asking("moon"))).text == "MOON"


@pytest.mark.anyio
async def test_a_script_that_has_run_out_says_what_was_asked() -> None:
    model = ScriptedModel(["one"])
    await model.ask(asking("first"))
    with pytest.raises(ScriptExhausted) as exhausted:
        await model.ask(asking("second"))
    assert str(exhausted.value) == (
        "test/scripted has 1 scripted replies and was asked 2 times; the last request ends with 'second'."
    )
    with pytest.raises(ScriptExhausted, match="ends with 'sys'"):
        await model.ask(Request("sys", ()))


@pytest.mark.anyio
async def test_replies_wait_for_the_gate_and_keep_the_order_of_the_requests() -> None:
    gate = anyio.Event()
    model = ScriptedModel(["one", "two"], gate=gate, latency=0.001)
    got: dict[str, str] = {}

    async def ask(text: str) -> None:
        got[text] = (await model.ask(asking(text))).text

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(ask, "first")
            group.start_soon(ask, "second")
            while len(model.requests) < 2:
                await anyio.lowlevel.checkpoint()
            assert got == {}
            gate.set()
    assert [got[request.messages[0].text] for request in model.requests] == ["one", "two"]


@pytest.mark.anyio
async def test_what_was_recorded_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    call = ToolCall("1", "Grep", {"pattern": "x"})
    recorder: Model = RecordingModel(ScriptedModel([call, "one", "two"], name="real/m", context_window=77), path)
    recorded = [await recorder.ask(asking(text)) for text in ("a", "b", "b")]
    replay = ReplayingModel(path)
    assert [await replay.ask(asking(text)) for text in ("b", "a", "b", "b")] == [
        recorded[1],
        recorded[0],
        recorded[2],
        recorded[2],
    ]
    assert (replay.name, replay.context_window, replay.max_output_tokens) == (recorder.name, 77, 4096)
    assert "sys" not in path.read_text()


@pytest.mark.anyio
async def test_a_request_that_was_not_recorded_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    await RecordingModel(ScriptedModel(["one"]), path).ask(asking("a"))
    with pytest.raises(ScriptExhausted) as refused:
        await ReplayingModel(path).ask(asking("b"))
    assert str(refused.value) == "talk.jsonl holds no answer to this request: it differs from what was recorded. Record it again."


@pytest.mark.anyio
async def test_ids_of_calls_make_no_difference_to_what_is_replayed_but_their_places_do(tmp_path: Path) -> None:
    def talk(first: str, second: str, answered: str) -> Request:
        calls = (ToolCall(first, "Grep"), ToolCall(second, "Grep"))
        return Request("", (Message("assistant", "", calls), Message("tool", "found", call_id=answered)))

    path = tmp_path / "talk.jsonl"
    await RecordingModel(ScriptedModel(["one"]), path).ask(talk("x", "y", "x"))
    replay = ReplayingModel(path)
    assert (await replay.ask(talk("p", "q", "p"))).text == "one"
    with pytest.raises(ScriptExhausted):
        await replay.ask(talk("p", "q", "q"))


@pytest.mark.anyio
async def test_a_slow_tool_ends_when_it_is_released() -> None:
    tool = SlowTool("result")
    got: list[object] = []

    async def call() -> None:
        got.append(await tool(path="x"))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await tool.begun()
            assert (tool.calls, got) == ([{"path": "x"}], [])
            tool.release()
    assert got == ["result"]


@pytest.mark.anyio
async def test_a_slow_tool_counts_its_cancellations() -> None:
    tool = SlowTool()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(tool)
            await tool.begun()
            group.cancel_scope.cancel()
    assert tool.cancelled == 1


@pytest.mark.anyio
async def test_a_blocking_slow_tool_runs_in_a_thread() -> None:
    tool = SlowTool("result")
    got: list[object] = []

    async def call() -> None:
        got.append(await anyio.to_thread.run_sync(lambda: tool.blocking(n=1)))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await tool.begun()
            tool.release()
    assert (got, tool.calls) == (["result"], [{"n": 1}])


@pytest.mark.anyio
async def test_a_slow_tool_can_fail() -> None:
    tool = SlowTool(ValueError("broken"))
    tool.release()
    with pytest.raises(ValueError, match="broken"):
        await tool()


@pytest.mark.anyio
async def test_a_streaming_slow_tool_gives_the_first_piece_immediately() -> None:
    tool = SlowTool(["a", "b", "c"])
    pieces: list[str] = []
    with anyio.fail_after(30):
        async for piece in tool.streaming():
            pieces.append(piece)
            if len(pieces) == 1:
                tool.release()
    assert pieces == ["a", "b", "c"]
