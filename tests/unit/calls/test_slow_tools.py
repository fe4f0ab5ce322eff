"""Slow tools as a model meets them: the texts, the retrieval, what is kept of what went wrong."""

import asyncio
import gc
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from frames import parted

from overspill import Output, Session, Settings, SyncSession, asking
from overspill.calls.job import Job
from overspill.errors import SessionClosed
from overspill.record import events
from overspill.record.events import JobChanged
from overspill.store.memory import MemoryStore
from overspill.testing import SlowTool
from overspill.types import ToolCall
from overspill.wording import retrieval

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]

HANGS = 20.0


@asynccontextmanager
async def session(store: MemoryStore | None = None, **settings: Any) -> AsyncIterator[Session]:
    with anyio.fail_after(HANGS):
        async with Session(Settings(**{"asyncTimeoutSecs": 0.02, **settings}), store=store or MemoryStore()) as s:
            yield s


async def get(session: Session, id: str, mode: str = "raw", **more: Any) -> str:
    return (await session.invoke("get_tool_output", {"id": id, "mode": mode, **more})).text


async def wait(session: Session) -> str:
    return (await session.invoke("wait_for_tool_output")).text


@pytest.mark.promise("no-turn-blocked")
async def test_a_slow_call_is_answered_in_time_and_its_output_is_not_lost():
    tool = SlowTool("the whole answer")
    async with session() as s:
        reply = await s.call("fetch", {"url": "a"}, tool)
        assert reply.job is not None
        id = reply.job.id
        assert reply.text == (
            f"Tool Output ID: {id}\nTool: fetch\n\n"
            f'When the System Notice shows this tool is ready, use get_tool_output("{id}", mode) to retrieve its output.'
        )
        assert (reply.new, reply.is_error, reply.job.state) == (False, False, "running")
        tool.release()
        assert await wait(s) == f"Completed tools:\n- fetch (id: {id}, size: 16B)"
        assert await get(s, id) == "the whole answer"
        assert await get(s, f"session-{s.id}/{_file(s, id)}") == "the whole answer"
    assert tool.calls == [{"url": "a"}]


def _file(session: Session, id: str) -> str:
    with session.open(id) as stored:
        return stored.kept.id


async def test_a_host_without_a_notice_tells_the_model_to_wait():
    tool = SlowTool()
    async with Session(Settings(asyncTimeoutSecs=0.02), store=MemoryStore(), notice=False) as s:
        reply = await s.call("fetch", {}, tool)
        assert reply.job is not None
        id = reply.job.id
        assert reply.text == (
            f"Tool Output ID: {id}\nTool: fetch\n\n"
            f'It keeps running in the background. Wait for it with get_tool_output(id="{id}", mode="wait").'
        )


async def test_a_fast_call_stays_in_the_foreground_and_its_size_decides():
    async with session(asyncTimeoutSecs=HANGS) as s:
        small = await s.call("small", {}, lambda: "little")
        large = await s.call("large", {}, lambda: "x" * 20_000)
        assert (small.text, small.job, small.kept) == ("little", None, None)
        assert large.job is None
        assert large.kept is not None
        assert large.kept.reason == "size_cap"
        assert await wait(s) == "No async tools running."
        assert s.notice() == ""


async def test_a_blocking_tool_moves_to_the_background_too():
    tool = SlowTool("from a thread")
    async with session() as s:
        reply = await s.call("block", {}, tool.blocking)
        assert reply.job is not None
        tool.release()
        assert await wait(s) == f"Completed tools:\n- block (id: {reply.job.id}, size: 13B)"
        assert await get(s, reply.job.id) == "from a thread"


async def test_blocking_tools_do_not_take_the_threads_that_everything_else_needs():
    tools = [SlowTool("x" * 20_000) for _ in range(45)]  # more than anyio has threads for everybody
    async with session(maxRunning=64) as s:
        ids = [await s.start(f"tool {n}", {}, tool.blocking) for n, tool in enumerate(tools)]
        for tool in tools:
            await tool.begun()
        kept = await s.keep("y" * 2_000_000)
        assert kept.size.bytes == 2_000_000
        for tool in tools:
            tool.release()
        await s.stop()
        assert [len(s.open(id).text()) for id in ids] == [20_000] * 45


@pytest.mark.parametrize("kind", ["async", "blocking"])
async def test_a_streaming_tool_is_read_while_it_runs_and_the_answer_says_it_is_partial(kind: str):
    tool = SlowTool(["first line\nzwölf and half a ".encode() + b"\xe2\x82", b"\xac\n", "last line\n"])

    def blocking() -> Iterator[Any]:
        first, *others = tool.result
        yield first
        tool.blocking()
        yield from others

    async with session() as s:
        reply = await s.call("log", {}, tool.streaming if kind == "async" else blocking)
        assert reply.job is not None
        id = reply.job.id
        await tool.begun()
        assert await get(s, id) == retrieval.not_ready()
        slice = await get(s, id, "slice", slice={"start": 0, "length": 100})
        text, note = parted(slice)
        assert text == "first line\nzwölf and half a "
        assert note.endswith("s) and has produced 29 bytes so far.]")
        assert note.startswith("[Partial: the tool is still running (")
        grep = await get(s, id, "grep", pattern="zw.lf", context=0)
        assert parted(grep)[0] == "2:zwölf and half a "
        assert "[Partial: the tool is still running (" in grep
        tool.release()
        assert await wait(s) == f"Completed tools:\n- log (id: {id}, size: 43B)"
        assert await get(s, id) == "first line\nzwölf and half a €\nlast line\n"


async def test_errors_of_the_edge_case_table():
    tool = SlowTool()
    async with session() as s, session() as other:
        reply = await s.call("slow", {}, tool)
        assert reply.job is not None
        big = await s.call("big", {}, lambda: "x" * 20_000, background=False)
        assert big.kept is not None
        theirs = await other.keep("not yours")
        assert await get(s, "abc") == "Unknown tool ID: abc"
        assert await get(s, theirs.artifact_id) == f"Unknown tool ID: {theirs.artifact_id}"
        assert await get(s, theirs.handle) == f"Unknown tool ID: {theirs.handle}"
        assert await get(s, reply.job.id) == retrieval.not_ready()
        assert await get(s, reply.job.id, "extract", query="x") == retrieval.not_ready()
        assert await get(s, reply.job.id, "slice") == retrieval.not_ready()
        assert await get(s, big.kept.artifact_id) == "Response too large (20000 bytes). Use ask or slice mode."
        assert await get(s, big.kept.artifact_id, "extract") == "Query required for extract mode."
        artifact = await s.invoke("get_artifact", {"id": reply.job.id})
        assert (artifact.text, artifact.is_error) == (f"400: {retrieval.not_ready()}", True)


@pytest.mark.parametrize(
    ("preset", "text"),
    [
        ("overspill", "Tool output expired. Call crawl again."),
        *((preset, "Tool output expired") for preset in ("tool_output", "artifacts", "slow")),
    ],
)
async def test_an_output_that_was_removed_is_expired(preset: str, text: str):
    store = MemoryStore()
    async with session(store, preset=preset) as s:
        kept = await s.keep("gone soon", "crawl")
        store.empty_shelf(s.id)
        assert await get(s, kept.artifact_id) == text


async def test_waiting_without_news_lists_running_tools():
    tool = SlowTool()
    async with session(waitMaxSecs=0.01) as s:
        reply = await s.call("slow", {}, tool)
        assert reply.job is not None
        text = await wait(s)
        assert text.startswith(f"Still running:\n- slow (id: {reply.job.id}, running 0.")
        assert text.endswith("s)")


async def test_a_job_is_announced_to_only_one_of_two_waiters():
    tool = SlowTool("x")
    answers: list[str] = []
    async with session() as s:
        id = await s.start("slow", {}, tool)

        async def ask() -> None:
            answers.append(await wait(s))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            tool.release()
    assert sorted(answers) == [f"Completed tools:\n- slow (id: {id}, size: 1B)", "No async tools running."]


async def test_a_call_in_the_background_is_accounted_for_when_it_is_answered_and_when_it_ends():
    ready, failed = SlowTool("the whole answer"), SlowTool(ValueError("no disk"))

    async def breaks_off() -> AsyncIterator[str]:
        yield "what came"
        await anyio.sleep_forever()

    async with session() as s:
        replies = [await s.call(f"depot__{name}", {}, tool, server="depot", kind="mcp", background="now")
                   for name, tool in (("ready", ready), ("failed", failed), ("cancelled", breaks_off))]  # fmt: skip
        for tool in (ready, failed):
            await tool.begun()
            tool.release()
        told: set[str] = set()
        while len(told) < 2:
            told |= set((await wait(s)).splitlines()[1:])
        while "what came" not in await get(s, replies[2].job.id, "slice", slice={"start": 0}):
            await anyio.wait_all_tasks_blocked()
        await s.abort()
        entries = s.accounting()
        handles = {kept.tool: kept.handle for kept in s.kept()}
    calls = [entry for entry in entries if entry["mcpServer"]]
    assert [(entry["command"], entry["status"]) for entry in calls if "background" not in entry] == [
        ("ready", "ok"), ("failed", "ok"), ("cancelled", "ok"),
    ]  # fmt: skip
    ended = {entry["command"]: entry for entry in calls if "background" in entry}
    assert {name: entry["status"] for name, entry in ended.items()} == {"ready": "ok", "failed": "failed", "cancelled": "failed"}
    assert {name: entry["details"] for name, entry in ended.items() if "details" in entry} == {
        name: {"tool_output_handle": handles[f"depot__{name}"], "tool_output_reason": "background", "truncated": True}
        for name in ("ready", "cancelled")
    }
    assert "the whole answer" not in str(entries)


async def test_a_retrieved_output_is_not_announced_again():
    async with session() as s:
        ready, failed = await s.start("a", {}, lambda: "x"), await s.start("b", {}, SlowTool(ValueError("no")).__call__)
        while (text := await get(s, ready)) == retrieval.not_ready():
            await anyio.wait_all_tasks_blocked()
        assert text == "x"
        await s.abort()
        assert await get(s, failed) == "Tool failed: cancelled"
        assert await wait(s) == "No async tools running."


async def test_the_notice_has_a_section_for_each_state():
    running, ready, large, failed = SlowTool(), SlowTool("y" * 400), SlowTool("word " * 50_000), SlowTool(ValueError("bad"))
    async with session(maxRunning=4) as s:
        assert s.notice() == ""
        ids = [await s.start(name, {}, tool) for name, tool in
               [("running", running), ("ready", ready), ("large", large), ("failed", failed)]]  # fmt: skip
        await running.begun()
        for tool in (ready, large, failed):
            await tool.begun()
        queued = await s.start("queued", {}, SlowTool())
        assert f"### Queued (1)\n- queued (id: {queued}, queued 0.0s)" in s.notice()
        for tool in (ready, large, failed):
            tool.release()
        completed: set[str] = set()
        while len(completed) < 3:
            completed |= set((await wait(s)).splitlines()[1:])
        await get(s, ids[1], "slice")
        notice = s.notice()
    assert completed == {
        f"- ready (id: {ids[1]}, size: 400B)",
        f"- large (id: {ids[2]}, size: 250KB)",
        f"- failed (id: {ids[3]}, failed: ValueError: bad)",
    }
    assert re.sub(r"running \d+\.\ds", "running s", notice) == (
        "## Async Tool Status\n\n"
        f"### Running (2)\n- running (id: {ids[0]}, running s)\n- queued (id: {queued}, running s)\n\n"
        f"### Ready (2)\n- large (id: {ids[2]}, ~50K tokens, exceeds threshold)\n"
        "- 1 more: 1 already retrieved. Their ids are in earlier tool results.\n\n"
        f"### Failed (1)\n- failed (id: {ids[3]}, failed: ValueError: bad)\n\n"
        'Use get_tool_output(id, mode="wait") to retrieve, or to wait for one that is running.'
    )


@pytest.mark.promise("failures-are-answers")
async def test_a_job_that_fails_answers_with_its_error():
    tool = SlowTool(ValueError("no such host"))
    async with session() as s:
        reply = await s.call("fetch", {}, tool)
        assert reply.job is not None
        tool.release()
        assert await wait(s) == f"Completed tools:\n- fetch (id: {reply.job.id}, failed: ValueError: no such host)"
        for mode in ("raw", "slice", "extract"):
            answer = await s.invoke("get_tool_output", {"id": reply.job.id, "mode": mode, "query": "x"})
            assert (answer.text, answer.is_error) == ("Tool failed: ValueError: no such host", True)


async def test_a_result_marked_as_an_error_is_a_failure_with_its_whole_text():
    tool = SlowTool(Output([{"type": "text", "text": "quota exceeded\nfor key 7"}], is_error=True))
    async with session() as s:
        reply = await s.call("fetch", {}, tool)
        assert reply.job is not None
        tool.release()
        await wait(s)
        assert await get(s, reply.job.id) == "Tool failed: quota exceeded\nfor key 7"
        assert await get(s, reply.job.id, "slice") == "quota exceeded\nfor key 7"


async def test_what_a_tool_had_produced_when_its_time_was_up_is_kept():
    tool = SlowTool(["the beginning\n", "the end\n"])
    async with session(toolTimeout=0.05) as s:
        reply = await s.call("crawl", {}, tool.streaming)
        assert reply.job is not None
        id = reply.job.id
        error = "TimeoutError: not finished after 0.05 s (toolTimeout)"
        assert await wait(s) == f"Completed tools:\n- crawl (id: {id}, failed: {error})"
        assert await get(s, id) == f"Tool failed: {error}"
        assert parted(await get(s, id, "slice")) == (
            "the beginning\n",
            f"[Only the first 14 bytes of this output are stored: the tool failed before it finished: {error}]",
        )


@pytest.mark.parametrize("overrides", [{}, {"brief": {"toolTimeout": 0.02}}])
async def test_without_a_time_limit_a_tool_runs_as_long_as_it_wants(overrides: dict[str, Any]):
    tool = SlowTool("done")
    async with session(toolTimeout=None, truncation={"overrides": overrides}) as s:
        reply = await s.call("crawl", {}, tool)
        assert reply.job is not None
        if overrides:
            await s.start("brief", {}, SlowTool("never"))
            assert "not finished after 0.02 s (toolTimeout)" in await wait(s)
        tool.release()
        assert await wait(s) == f"Completed tools:\n- crawl (id: {reply.job.id}, size: 4B)"
        assert await get(s, reply.job.id) == "done"


async def test_a_tool_that_resists_cancellation_fails_in_time_and_keeps_what_it_produced():
    release = anyio.Event()

    async def deaf() -> AsyncIterator[str]:
        yield "something\n"
        with anyio.CancelScope(shield=True):
            await release.wait()
        yield "too late\n"

    async with session(toolTimeout=0.02) as s:
        id = await s.start("deaf", {}, deaf)
        error = "TimeoutError: not finished after 0.02 s (toolTimeout)"
        assert await wait(s) == f"Completed tools:\n- deaf (id: {id}, failed: {error})"
        release.set()
        await anyio.wait_all_tasks_blocked()
        with s.open(id) as stored:
            assert stored.text() == "something\n"


async def test_a_thread_that_cannot_be_interrupted_is_named():
    tool = SlowTool()
    s = Session(Settings(toolTimeout=0.3), store=MemoryStore())
    await s.begin()
    id = await s.start("stuck", {}, tool.blocking)
    assert "failed: TimeoutError" in await wait(s)
    racing = await s.call("raced", {}, tool.blocking, background=False)
    assert racing.text == "Tool failed: TimeoutError: not finished after 0.3 s (toolTimeout)"
    left = await s.close()
    assert [(job.tool, job.state) for job in left] == [("stuck", "failed"), ("raced", "failed")]
    assert left[0].id == id
    tool.release()


async def test_a_tool_that_exits_fails_without_ending_the_program():
    def leave() -> None:
        raise SystemExit(3)

    async with session(asyncTimeoutSecs=HANGS) as s:
        reply = await s.call("leave", {}, leave)
        assert (reply.text, reply.is_error) == ("Tool failed: SystemExit: 3", True)
        id = await s.start("leave", {}, leave)
        assert await wait(s) == f"Completed tools:\n- leave (id: {id}, failed: SystemExit: 3)"


@pytest.mark.slow
async def test_a_blocking_call_that_waits_for_a_person_does_not_move_to_the_background():
    person = SlowTool("the person said yes")

    def ask() -> str:
        with asking():
            return person.blocking()

    async with session(asyncTimeoutSecs=0.3, toolTimeout=0.4) as s, anyio.create_task_group() as group:
        group.start_soon(_release_later, person, 0.4)
        assert (await s.call("ask", {}, ask)).text == "the person said yes"


async def test_a_background_output_comes_with_its_images():
    image = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png", "_meta": {"kept": True}}
    huge = {"type": "image", "data": "A" * 2_000_000, "mimeType": "image/png"}
    tool = SlowTool([image, {"type": "text", "text": "a chart"}, huge])
    async with session() as s:
        reply = await s.call("chart", {}, tool)
        assert reply.job is not None
        tool.release()
        await wait(s)
        answer = await s.invoke("get_tool_output", {"id": reply.job.id, "mode": "raw"})
        text, first, second = answer.content
        assert text == {"type": "text", "text": "a chart"}
        assert first is image
        assert second["text"].startswith(
            "Image image/png (1.5 MB) is stored but not shown, because it is not text.\n[Artifact: out_"
        )


async def test_images_come_even_when_the_text_beside_them_is_too_large():
    image = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
    tool = SlowTool([{"type": "text", "text": "x" * 20_000}, image])
    async with session() as s:
        id = await s.start("chart", {}, tool)
        tool.release()
        await wait(s)
        answer = await s.invoke("get_tool_output", {"id": id, "mode": "raw"})
        assert answer.text == "Response too large (20000 bytes). Use ask or slice mode."
        assert answer.content[1] is image


async def test_an_output_that_ends_while_the_store_is_full_is_shown_from_memory():
    small, large = SlowTool("small but not storable"), SlowTool("0123456789" * 300_000)
    async with session(MemoryStore(run_bytes=0)) as s:
        ids = [await s.start("small", {}, small), await s.start("large", {}, large)]
        small.release()
        await wait(s)
        large.release()
        assert await wait(s) == f"Completed tools:\n- large (id: {ids[1]}, size: 1.0MB)"
        assert await get(s, ids[0]) == "small but not storable"
        assert await get(s, ids[0], "slice", slice={"start": 6, "length": 3}) == "but"
        text, note = parted(await get(s, ids[1], "slice", slice={"start": 1_048_570, "length": 10}))
        assert text == "012345"
        assert note == (
            "[Only the first 1,048,576 bytes of this output are stored: 1,951,424 more were lost. The quota of 0 bytes "
            "for this run is used up: 1,048,576 bytes could not be stored. What was stored before is still there; "
            "close sessions or delete outputs to make room.]"
        )


async def test_an_output_stored_only_in_part_says_so():
    tool = SlowTool("0123456789" * 30)
    async with session(MemoryStore(run_bytes=100)) as s:
        id = await s.start("tool", {}, tool)
        tool.release()
        await wait(s)
        text, note = parted(await get(s, id))
        assert text == "0123456789" * 10
        assert note.startswith("[Only the first 100 bytes of this output are stored: The quota of 100 bytes for this run is")


@pytest.mark.parametrize("background", [True, False])
async def test_abort_answers_calls_that_still_wait(background: bool):
    tool = SlowTool()
    async with session(asyncTimeoutSecs=HANGS) as s:
        replies: list[Any] = []

        async def call() -> None:
            replies.append(await s.call("slow", {}, tool, background=background))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await tool.begun()
            assert await s.abort() == []
        assert replies[0].is_error
        assert replies[0].text == "Tool failed: SessionClosed: the session was aborted before the tool finished"
        with pytest.raises(SessionClosed):
            await s.call("more", {}, tool, background=background)


async def test_a_cancelled_caller_leaves_nothing_in_the_store():
    store, tool = MemoryStore(), SlowTool(["x" * 2_000_000, "y"])
    async with session(store, asyncTimeoutSecs=HANGS) as s:
        async with anyio.create_task_group() as group:
            group.start_soon(s.call, "stream", {}, tool.streaming)
            await tool.begun()
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        assert store.free() == 10 * 2**30
        assert s.notice() == ""


async def test_a_tool_that_was_cancelled_from_outside_is_a_failure():
    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    if anyio.get_cancelled_exc_class() is not asyncio.CancelledError:
        pytest.skip("only asyncio lets a tool raise it")
    async with session() as s:
        id = await s.start("odd", {}, cancels_itself)
        assert await wait(s) == f"Completed tools:\n- odd (id: {id}, failed: RuntimeError: the tool cancelled itself)"
        assert await get(s, id) == "Tool failed: RuntimeError: the tool cancelled itself"


async def test_nothing_moves_to_the_background_when_async_is_off():
    tool = SlowTool("waited for")
    async with session(**{"async": False}) as s:
        async with anyio.create_task_group() as group:
            group.start_soon(_release_later, tool)
            assert (await s.call("slow", {}, tool)).text == "waited for"
        assert s.notice() == ""
        large = await s.call("large", {}, lambda: "a b " * 2_900)  # over no byte limit; tokens do not matter now
        assert large.kept is None


async def test_one_tool_may_stay_in_the_foreground_and_another_have_its_own_timeout():
    slow, patient = SlowTool("a"), SlowTool("b")
    overrides = {"slow": {"async": False}, "patient": {"asyncTimeoutSecs": HANGS}}
    async with session(truncation={"overrides": overrides}) as s:
        async with anyio.create_task_group() as group:
            group.start_soon(_release_later, slow)
            group.start_soon(_release_later, patient)
            assert (await s.call("slow", {}, slow)).text == "a"
            assert (await s.call("patient", {}, patient)).text == "b"
        assert (await s.call("other", {}, SlowTool())).job is not None


async def _release_later(tool: SlowTool, seconds: float = 0.05) -> None:
    """When another call, which began after this one, has exceeded this time limit."""
    await tool.begun()
    async with session(toolTimeout=seconds) as other:
        assert (await other.call("clock", {}, SlowTool(), background=False)).is_error
    tool.release()


async def test_the_journal_records_every_change_of_a_jobs_state():
    store, first, second = MemoryStore(), SlowTool(), SlowTool(ValueError("bad"))
    async with session(store, maxRunning=1) as s:
        reply = await s.call("first", {}, first)
        id = await s.start("second", {}, second)
        first.release()
        second.release()
        await s.stop()
        changes = [event for event in events.decode_events(store.read_shelf(s.id).journal()) if isinstance(event, JobChanged)]
    assert reply.job is not None
    assert [(change.tool, change.state, change.error) for change in changes] == [
        ("first", "running", ""),
        ("second", "queued", ""),
        ("first", "ready", ""),
        ("second", "running", ""),
        ("second", "failed", "ValueError: bad"),
    ]
    assert all(change.t > 0 and change.seconds >= 0 for change in changes)
    assert id.startswith("art_")


async def test_a_tool_may_call_other_tools_even_if_only_one_may_run():
    async with session(maxRunning=1, asyncTimeoutSecs=HANGS) as s:

        async def inner() -> str:
            return "inner"

        async def outer() -> str:
            return f"outer of {(await s.call('inner', {}, inner)).text}"

        def blocking_inner() -> str:
            return "blocking inner"

        def blocking_outer() -> str:
            return "outer of " + anyio.from_thread.run(s.call, "inner", {}, blocking_inner).text

        assert (await s.call("outer", {}, outer)).text == "outer of inner"
        assert (await s.call("outer", {}, blocking_outer)).text == "outer of blocking inner"
        assert (await s.call("outer", {}, blocking_outer, background=False)).text == "outer of blocking inner"
        assert (await s.call("after", {}, inner)).text == "inner"


class Load:
    """How many tools run, those that wait for a call of theirs not counted."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0

    async def work(self) -> str:
        self.now += 1
        self.most = max(self.most, self.now)
        await anyio.wait_all_tasks_blocked()
        self.now -= 1
        return "done"


@pytest.mark.parametrize("limit", [1, 2])
async def test_tools_that_call_tools_do_not_run_more_at_a_time_than_allowed(limit: int):
    load = Load()
    async with session(maxRunning=limit, asyncTimeoutSecs=HANGS) as s:

        async def outer() -> str:
            await s.call("inner", {}, load.work)
            return await load.work()

        replies = await s.turn([ToolCall(str(n), "outer") for n in range(6)], lambda call: outer())
    assert [reply.text for reply in replies] == ["done"] * 6
    assert load.most <= limit


async def test_a_tool_that_started_another_and_waited_for_it_does_not_run_beside_a_third():
    load = Load()
    async with session(maxRunning=1, asyncTimeoutSecs=HANGS) as s:

        async def outer() -> str:
            await s.start("inner", {}, load.work)
            await s.invoke("wait_for_tool_output", {})
            return await load.work()

        await s.turn([ToolCall(str(n), "outer") for n in range(6)], lambda call: outer())
        await s.stop()
    assert load.most == 1


async def test_a_tool_that_cancels_a_call_waits_for_its_slot_too():
    load = Load()
    async with session(maxRunning=1, asyncTimeoutSecs=HANGS) as s:

        async def outer() -> str:
            with anyio.move_on_after(0):
                await s.call("inner", {}, load.work)
            return await load.work()

        await s.turn([ToolCall(str(n), "outer") for n in range(6)], lambda call: outer())
        assert (await s.call("after", {}, load.work)).text == "done"
    assert load.most == 1


@pytest.mark.parametrize("ending", ["abort", "timeout"])
async def test_a_tool_that_waits_for_its_slot_can_still_be_stopped(ending: str):
    blocking = SlowTool()
    given_up = anyio.Event()
    async with session(maxRunning=1, asyncTimeoutSecs=HANGS, truncation={"overrides": {"outer": {"toolTimeout": 0.05}}}) as s:

        async def inner() -> str:
            await s.start("blocking", {}, blocking)
            await anyio.wait_all_tasks_blocked()  # now it is the first in the queue
            return "inner"

        async def outer() -> str:
            await s.call("inner", {}, inner)
            given_up.set()
            return "outer"

        replies: list[str] = []

        async def call() -> None:
            replies.append((await s.call("outer", {}, outer)).text)

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await blocking.begun()
            if ending == "abort":
                await s.abort()
    assert "Tool failed: " in replies[0]
    assert not given_up.is_set()


async def test_a_tool_may_make_several_parallel_calls_that_call_tools_themselves():
    load = Load()
    async with session(maxRunning=1, asyncTimeoutSecs=HANGS) as s:

        async def middle() -> str:
            await s.call("inner", {}, load.work)
            return (await s.call("inner", {}, load.work)).text

        async def outer() -> str:
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(s.call, "middle", {}, middle)
            return await load.work()

        replies = await s.turn([ToolCall(str(n), "outer") for n in range(3)], lambda call: outer())
    assert [reply.text for reply in replies] == ["done"] * 3
    assert load.most == 1


async def test_a_tool_of_a_blocking_session_may_call_tools_too():
    def run() -> str:
        with SyncSession(Settings(maxRunning=1, asyncTimeoutSecs=HANGS), store=MemoryStore()) as s:
            return s.call("outer", {}, lambda: "outer of " + s.call("inner", {}, lambda: "inner").text).text

    assert await anyio.to_thread.run_sync(run) == "outer of inner"


async def test_retrieval_never_moves_to_the_background():
    tool = SlowTool("x" * 100)
    async with session(asyncTimeoutSecs=0.001) as s:
        await s.start("slow", {}, tool)
        async with anyio.create_task_group() as group:
            group.start_soon(_release_later, tool)
            reply = await s.call("wait_for_tool_output")
        assert reply.job is None
        assert reply.text.startswith("Completed tools:")


@pytest.mark.slow
async def test_a_large_background_output_does_not_stay_in_memory():
    tool = SlowTool("z" * 3_000_000)
    async with session() as s:
        await s.start("large z", {}, tool)
        tool.release()
        await wait(s)
        assert {job.result for job in gc.get_objects() if isinstance(job, Job) and job.tool == "large z"} == {None}
