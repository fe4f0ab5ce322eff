"""The way of a call: a tool's failure is an answer, late results are not lost, and each call is on record."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator, Iterator
from threading import Event
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from extras import OFFERED
from frames import TOO_LARGE, parted

from overspill.budget import ContextBudget
from overspill.errors import RefError, SessionClosed
from overspill.record import events
from overspill.record.events import JobChanged, OutputStored, TokensReported, ToolCalled
from overspill.record.op_tree import accounting
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.memory import MemoryStore
from overspill.types import Reply, ToolCall
from overspill.wording import retrieval

pytestmark = pytest.mark.both_loops


def opened(settings: Settings | None = None, **options: Any) -> Session:
    return Session(settings or Settings(), store=MemoryStore(), **options)


def recorded(session: Session) -> list[events.Entry]:
    session.op_tree()  # writes what waits
    return list(events.decode_events(session._life.parts.shelf.journal()))


def fails(error: BaseException) -> Any:
    def tool() -> str:
        raise error

    return tool


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.slow
@pytest.mark.promise("cheap")
@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("background", [True, False])
async def test_what_a_call_needed_is_freed_with_its_reply(background: bool):
    class Text(str):
        __slots__ = ("__weakref__",)

    async def tool() -> str:
        return Text("x" * 2048)

    async with opened() as session:
        reply = await session.call("tool", {}, tool, background=background)
        text = weakref.ref(reply.text)
        assert text() is not None
        del reply
        await anyio.lowlevel.checkpoint()  # a task that has ended is let go in the next round of the event loop
        assert text() is None


@pytest.mark.promise("failures-are-answers")
@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such table: users"), "Tool failed: ValueError: no such table: users"),
        (KeyError(), "Tool failed: KeyError"),
        (ExceptionGroup("two", [ValueError("a"), TypeError("b")]), "Tool failed: ValueError: a; TypeError: b"),
        (SystemExit(2), "Tool failed: SystemExit: 2"),
    ],
)
async def test_a_tool_that_raises_is_answered_with_its_message(error: BaseException, text: str, background: bool):
    async def coroutine() -> str:
        raise error

    async with opened() as session:
        for tool in (fails(error), coroutine):
            reply = await session.call("query", {}, tool, background=background)
            assert (reply.text, reply.is_error, reply.kept, reply.new) == (text, True, None, True)
        assert await session.call("query", {}, lambda: "still here") is not None
        assert session.counters.failed_calls == 2


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Strange(BaseException):
    pass


@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize(("error", "text"), [(Wordless(), "Tool failed: Wordless"), (Strange("so"), "Tool failed: Strange: so")])
async def test_the_strangest_exception_is_an_answer_and_the_session_continues(error: BaseException, text: str, background: bool):
    async with opened() as session:
        with anyio.fail_after(20):
            reply = await session.call("query", {}, fails(error), background=background)
            assert (reply.text, reply.is_error) == (text, True)
            assert (await session.call("query", {}, lambda: "still here", background=background)).text == "still here"


async def test_a_very_long_error_is_kept_and_stays_an_error():
    async with opened(Settings(previewChars=0)) as session:
        reply = await session.call("query", {}, fails(ValueError("x" * 1_000_000)))
        assert reply.is_error
        assert reply.kept is not None
        assert session.open(reply.kept.handle).text() == f"Tool failed: ValueError: {'x' * 1_000_000}"
        assert reply.text.startswith(f"{TOO_LARGE} (1000025 bytes, 1 line, ")


@pytest.mark.parametrize("background", [True, False])
async def test_a_host_that_wants_exceptions_gets_the_original_exception(background: bool):
    error = ValueError("x" * 5000)
    async with opened() as session:
        with pytest.raises(ValueError, match="x") as caught:
            await session.call("query", {}, fails(error), errors="raise", background=background)
        assert caught.value is error
        (called,) = [event for event in recorded(session) if isinstance(event, ToolCalled)]
        assert (called.status, called.chars_out < 1100) == ("failed", True)


async def test_a_host_that_wants_exceptions_gets_those_of_streams_too():
    async def stream() -> AsyncIterator[str]:
        yield "x" * 2_000_000
        raise OSError("gone")

    async with opened() as session:
        with pytest.raises(OSError, match="gone"):
            await session.call("query", {}, stream, errors="raise")
        assert session.counters.kept == 0


async def test_a_value_that_cannot_be_written_as_json_raises_if_the_host_wants_exceptions():
    async with opened() as session:
        reply = await session.call("query", {}, object)
        assert reply.is_error
        with pytest.raises(TypeError, match="value of type object, which cannot be written as JSON"):
            await session.call("query", {}, object, errors="raise")


async def test_a_tool_called_with_the_wrong_arguments_says_so():
    async with opened() as session:
        reply = await session.call("query", {"wrong": 1}, lambda q: q)
    assert reply.is_error
    assert "unexpected keyword argument 'wrong'" in reply.text


@pytest.mark.parametrize("background", [True, False])
async def test_a_tool_that_takes_too_long_is_stopped(background: bool):
    async with opened(Settings(toolTimeout=0.05)) as session:
        reply = await session.call("crawl", {}, anyio.sleep_forever, background=background)
    assert (reply.text, reply.is_error) == ("Tool failed: TimeoutError: not finished after 0.05 s (toolTimeout)", True)


async def test_a_blocking_generator_that_takes_too_long_is_left_behind_with_what_it_yielded():
    released = Event()

    def stream() -> Iterator[str]:
        yield "first\n"
        released.wait(timeout=30)
        yield "late\n"

    async with opened(Settings(toolTimeout=0.1)) as session:
        with anyio.fail_after(20):
            reply = await session.call("crawl", {}, stream, background=False)
        released.set()
    assert reply.is_error
    assert reply.text == (
        "first\n\n\n[The tool failed before it finished: TimeoutError: not finished after 0.1 s (toolTimeout). "
        "What it had produced by then is above or stored.]"
    )


@pytest.mark.parametrize("mode", ["slice", "grep", "raw"])
async def test_reading_a_running_tool_takes_nothing_from_its_output(mode: str):
    finish = anyio.Event()

    async def crawl() -> str:
        await finish.wait()
        return "the whole result"

    async with opened() as session:
        id = await session.start("crawl", {}, crawl)
        looked = await session.invoke("get_tool_output", {"id": id, "mode": mode, "pattern": "x"})
        assert (looked.text, looked.is_error) == (retrieval.not_ready(), True)
        finish.set()
        await session.invoke("wait_for_tool_output", {})
        assert (await session.invoke("get_tool_output", {"id": id, "mode": "raw"})).text == "the whole result"


async def test_a_long_background_error_is_shown_in_short_and_stored_whole():
    async with opened() as session:
        id = await session.start("query", {}, fails(ValueError("y" * 5000)))
        await session.invoke("wait_for_tool_output", {})
        raw = await session.invoke("get_tool_output", {"id": id, "mode": "raw"})
        assert raw.text == f"Tool failed: ValueError: {'y' * 988}… [4,012 more characters]"
        part = await session.invoke("get_tool_output", {"id": id, "mode": "slice", "slice": {"start": 5016}})
        assert part.text == "y" * 9
        jobs = [event for event in recorded(session) if isinstance(event, JobChanged)]
        assert max(len(event.error) for event in jobs) < 1100


async def test_a_stream_that_broke_off_in_the_background_keeps_what_it_produced():
    async def stream() -> AsyncIterator[str]:
        yield "one\ntwo\n"
        raise OSError("gone")

    async with opened() as session:
        id = await session.start("tail", {}, stream)
        assert (await session.invoke("wait_for_tool_output", {})).text == (
            f"Completed tools:\n- tail (id: {id}, failed: OSError: gone)"
        )
        part = await session.invoke("get_tool_output", {"id": id, "mode": "slice"})
        assert parted(part.text) == (
            "one\ntwo\n",
            "[Only the first 8 bytes of this output are stored: the tool failed before it finished: OSError: gone]",
        )
        assert session.open(id).kept.missing == "the tool failed before it finished: OSError: gone"


async def test_a_background_output_that_cannot_be_stored_stays_in_memory():
    async with Session(store=MemoryStore(run_bytes=1)) as session:
        await session.keep("x", "filler")
        id = await session.start("crawl", {}, lambda: "result")
        waited = await session.invoke("wait_for_tool_output", {})
        assert waited.text == f"Completed tools:\n- crawl (id: {id}, size: 6B)"
        raw = await session.invoke("get_tool_output", {"id": id, "mode": "raw"})
        assert raw.text == "result"


async def test_a_call_aborted_before_it_could_start_is_answered_too():
    started = anyio.Event()
    replies: list[Reply] = []

    async def crawl() -> str:
        started.set()
        await anyio.sleep_forever()
        return "never"

    async with opened(Settings(maxRunning=1)) as session, anyio.create_task_group() as group:

        async def call() -> None:
            replies.append(await session.call("crawl", {}, crawl))

        group.start_soon(call)
        await started.wait()
        group.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        await session.abort()
    assert [reply.is_error for reply in replies] == [True, True]
    assert {reply.text for reply in replies} == {"Tool failed: SessionClosed: the session was aborted before the tool finished"}


async def test_an_aborted_stream_in_the_background_keeps_what_it_produced():
    yielded = anyio.Event()

    async def stream() -> AsyncIterator[str]:
        yield "so far"
        yielded.set()
        await anyio.sleep_forever()

    async with opened() as session:
        id = await session.start("tail", {}, stream)
        await yielded.wait()
        await session.abort()
        part = await session.invoke("get_tool_output", {"id": id, "mode": "slice"})
        content, note = parted(part.text)
        assert content == "so far"
        assert note.startswith("[Only the first 6 bytes of this output are stored: the tool failed before")
        raw = await session.invoke("get_tool_output", {"id": id, "mode": "raw"})
        assert raw.text == "Tool failed: cancelled"


@pytest.mark.parametrize("settings", [Settings(), Settings(preset="artifacts")])
async def test_a_stopping_session_takes_no_new_calls(settings: Settings):
    ran: list[bool] = []
    async with opened(settings) as session:
        await session.stop()
        with pytest.raises(SessionClosed, match="takes no new tool calls"):
            await session.call("search", {}, lambda: ran.append(True))
        with pytest.raises(SessionClosed, match="takes no new tool calls"):
            await session.start("search", {}, lambda: ran.append(True))
        replies = await session.turn([ToolCall("1", "search")], lambda call: ran.append(True))
        assert [(reply.text, reply.is_error) for reply in replies] == [
            ("The session takes no new tool calls because it is ending.", True)
        ]
        assert (await session.invoke("wait_for_tool_output", {})).text == "No async tools running."
    assert ran == []


async def test_a_turn_answers_our_tools_and_the_hosts_in_order():
    async def execute(call: ToolCall) -> str:
        return f"{call.name} {dict(call.args)} {call.id}"

    async with opened() as session:
        kept = await session.keep("stored", "note")
        calls = [
            ToolCall("1", "search", {"q": "x"}),
            ToolCall("2", "get_artifact", {"id": kept.artifact_id}),
            ToolCall("3", "other"),
        ]
        replies = await session.turn(calls, execute)
        assert [reply.text for reply in replies] == ["search {'q': 'x'} 1", "stored", "other {} 3"]
        assert await session.turn([], execute) == []


async def test_a_turn_without_an_executor_runs_registered_tools():
    async with opened() as session:

        @session.tool
        def double(n: int) -> int:
            return 2 * n

        replies = await session.turn([ToolCall("1", "double", {"n": 4}), ToolCall("2", "triple")])
        assert (replies[0].text, replies[1].is_error) == ("8", True)
        assert replies[1].text == f"Unknown tool 'triple'. Known tools: double, {', '.join(OFFERED)}."


async def test_the_first_call_of_a_session_may_be_one_that_is_refused():
    async with opened() as session:
        (reply,) = await session.turn([ToolCall("1", "nope")])
        assert reply.is_error
        assert [type(event) for event in recorded(session)][2:] == [ToolCalled]


async def test_a_blocking_executor_runs_in_a_thread_and_its_failure_is_an_answer():
    def execute(call: ToolCall) -> str:
        raise RuntimeError(call.name)

    async with opened() as session:
        (reply,) = await session.turn([ToolCall("1", "search")], execute)
    assert (reply.text, reply.is_error) == ("Tool failed: RuntimeError: search", True)


async def test_a_reference_that_cannot_be_resolved_is_an_answer_and_the_tool_does_not_run():
    ran: list[Any] = []
    args = {"body": "{{output:art_1794717193124_30de8211e5e402e61f9}}"}
    async with opened() as session:
        reply = await session.call("send", args, lambda body: ran.append(body))
        assert reply.is_error
        assert "art_1794717193124_30de8211e5e402e61f9" in reply.text
        with pytest.raises(RefError):
            await session.call("send", args, lambda body: ran.append(body), errors="raise")
        assert session.counters.failed_calls == 1
    assert ran == []


async def test_a_reference_becomes_the_stored_content_and_is_recorded():
    async with opened() as session:
        kept = await session.keep("stored text", "note")
        reply = await session.call("send", {"body": f"{{{{output:{kept.handle}}}}}"}, lambda body: f"got {body}")
        assert reply.text == "got stored text"
        assert session.counters.refs == 1


async def test_each_call_is_recorded_with_figures_only():
    async with opened() as session:
        await session.call("search", {"q": "é", "limit": 3}, lambda **_: "result", server="web", kind="mcp")
        reply = await session.call("dump", {"handle": object()}, lambda handle: "x" * 20_000)
        first, second = (event for event in recorded(session) if isinstance(event, ToolCalled))
        assert reply.kept is not None
        assert (first.tool, first.server, first.kind, first.status) == ("search", "web", "mcp", "ok")
        assert (first.chars_in, first.chars_out, first.id, first.reason, first.truncated) == (19, 6, "", None, False)
        assert (second.chars_in, second.chars_out, second.id) == (0, len(reply.text), reply.kept.id)
        assert (second.reason, second.truncated) == ("size_cap", True)
        (entry,) = accounting([second], session.id)
        assert entry["details"] == {
            "tool_output_handle": reply.kept.handle,
            "tool_output_reason": "size_cap",
            "truncated": True,
        }


async def test_calls_are_written_a_moment_later_also_after_a_retrieval():
    async with opened() as session:
        await session.call("search", {}, lambda: "one")
        shelf = session._life.parts.shelf
        with anyio.fail_after(20):
            while sum(isinstance(event, ToolCalled) for event in events.decode_events(shelf.journal())) < 1:
                await anyio.lowlevel.checkpoint()
            await session.invoke("get_artifact", {"id": "x"})
            await session.call("search", {}, lambda: "two")
            while sum(isinstance(event, ToolCalled) for event in events.decode_events(shelf.journal())) < 2:
                await anyio.lowlevel.checkpoint()


async def test_what_the_host_settles_is_recorded_with_the_next_call_or_at_the_end():
    budget = ContextBudget(window=10_000)
    store = MemoryStore()
    async with Session(Settings(retention="keep"), name="s", store=store, budget=budget) as session:
        await session.call("search", {}, lambda: " a" * 40)
        budget.settle(used=45)
        await session.call("search", {}, lambda: " a" * 10)
        assert (session.counters.estimated_tokens, session.counters.reported_tokens) == (40, 45)
        budget.settle(used=60)
    async with Session(Settings(retention="keep"), name="s", store=store) as session:
        settled = [event for event in recorded(session) if isinstance(event, TokensReported)]
        assert [(event.estimated, event.reported) for event in settled] == [(40, 45), (55, 60)]


async def test_neither_content_nor_arguments_nor_queries_reach_the_journal_or_a_log(caplog: pytest.LogCaptureFixture):
    caplog.set_level(0)
    private = "PR1VATE"
    async with opened() as session:
        args = {"path": f"/home/{private}/file.txt?{private}", "token": private}
        reply = await session.call("read", args, lambda **_: f"{private}\n" * 5000)
        assert reply.kept is not None
        id = reply.kept.artifact_id
        for request in (
            {"id": id, "mode": "grep", "pattern": private},
            {"id": id, "mode": "query", "query": private},
            {"id": id, "mode": private},
            {"id": id, "mode": [private]},
            {"id": private, "mode": "raw"},
            {"id": id, "mode": "slice", "slice": {"anchor": private}},
        ):
            await session.invoke("get_tool_output", request)
        await session.invoke("get_artifact", {"id": id, "query": private})
        await session.invoke("tool_output", {"handle": id, "extract": private, "mode": "truncate"})
        journal = b"".join(session._life.parts.shelf.journal())
        recorded(session)
        journal += b"".join(session._life.parts.shelf.journal())
        stored = [event for event in recorded(session) if isinstance(event, OutputStored)]
    assert private.encode() not in journal
    assert [event.kept.source for event in stored] == ["read: file.txt"]
    assert caplog.records
    assert not any(private in str(vars(record)) for record in caplog.records if record.name.startswith("overspill"))
