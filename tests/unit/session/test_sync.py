"""The blocking session: the same, from programs without an event loop, from any thread."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import anyio
import anyio.to_thread
import pytest
from extras import OFFERED
from frames import TOO_LARGE

from overspill import Session, Settings, SyncSession, ToolCall
from overspill.errors import SessionClosed, UnknownHandle
from overspill.store.memory import MemoryStore


def opened(**settings: Any) -> SyncSession:
    return SyncSession(Settings(**settings), store=MemoryStore())


def test_every_method_blocks_and_answers():
    with opened() as session:
        reply = session.call("dump", {"n": 2}, lambda n: "line\n" * 5000 * n)
        assert reply.kept is not None
        assert session.open(reply.kept.handle).lines(1, 1) == "line\n"
        assert session.invoke("get_artifact", {"id": reply.kept.artifact_id, "lines": "1-2"}).text == "line\nline\n"
        replies = session.turn([ToolCall("1", "a"), ToolCall("2", "wait_for_tool_output")], lambda call: call.id)
        assert [each.text for each in replies] == ["1", "No async tools running."]
        kept = session.keep({"a": 1}, "report")
        assert session.open(kept.handle).text() == '{"a":1}'
        assert session.owns("get_artifact")
        assert [tool["name"] for tool in session.tools()] == OFFERED
        assert session.tools("openai")[0]["type"] == "function"
        assert session.notice() == ""
        assert session.extract(kept.handle, "a").source_size_bytes == 7
        assert [op.name for op in session.op_tree().children if op.kind == "session"] == ["extract"]
        assert {entry["command"] for entry in session.accounting()} == {"dump", "get_artifact", "a", "wait_for_tool_output"}
        assert session.id == kept.session
        assert session.counters.kept == 2
        id = session.start("slow", {}, lambda: "done")
        session.stop()
        assert session.invoke("get_tool_output", {"id": id, "mode": "raw"}).text == "done"


def test_a_tool_that_raises_raises_in_the_callers_thread():
    error = ValueError("bad")

    def tool() -> None:
        raise error

    with opened() as session:
        with pytest.raises(ValueError, match="bad") as caught:
            session.call("a", {}, tool, errors="raise")
        assert caught.value is error
        with pytest.raises(UnknownHandle):
            session.open("art_1794717193124_30de8211e5e402e61f9")


@pytest.mark.slow
def test_several_threads_may_call_at_once():
    with opened() as session, ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda n: session.call("dump", {"n": n}, lambda n: f"{n}\n" * 10_000), range(40)))
        texts = list(threads.map(lambda reply: session.open(reply.kept.handle).text(), replies))
        assert texts == [f"{n}\n" * 10_000 for n in range(40)]
        assert session.counters.calls == 40


def test_blocking_tools_run_beside_each_other():
    first, second = Event(), Event()

    def meet(mine: Event, other: Event) -> str:
        mine.set()
        return "met" if other.wait(timeout=30) else "alone"

    with opened() as session, ThreadPoolExecutor(2) as threads:
        one = threads.submit(session.call, "a", {}, lambda: meet(first, second))
        two = threads.submit(session.call, "b", {}, lambda: meet(second, first))
        assert (one.result(30).text, two.result(30).text) == ("met", "met")


def test_aborting_names_what_cannot_be_interrupted():
    started, released = Event(), Event()

    def slow() -> None:
        started.set()
        released.wait(timeout=30)

    with opened() as session:
        session.start("slow", {}, slow)
        started.wait(timeout=30)
        left = session.abort()
        assert [job.tool for job in left] == ["slow"]
        released.set()


def test_a_session_that_is_not_open_says_how_to_open_it():
    session = opened()
    with pytest.raises(SessionClosed) as caught:
        session.call("a", {}, lambda: "x")
    assert str(caught.value) == "The session is not open. Use `with SyncSession() as session`."
    with session:
        assert session.call("a", {}, lambda: "x").text == "x"
    with pytest.raises(SessionClosed):
        session.call("a", {}, lambda: "x")


@pytest.mark.parametrize("look", ["notice", "news", "kept", "op_tree", "accounting"])
def test_nothing_can_be_looked_at_in_a_session_that_is_not_open(look: str):
    with pytest.raises(SessionClosed) as caught:
        getattr(opened(), look)()
    assert str(caught.value) == "The session is not open. Use `with SyncSession() as session`."


@pytest.mark.slow
def test_threads_may_look_while_others_start_work():
    with opened() as session, ThreadPoolExecutor(4) as threads:
        work = [threads.submit(session.start, "quick", {}, lambda: "done") for _ in range(300)]
        looks = [threads.submit(look) for _ in range(300) for look in (session.notice, session.accounting)]
        assert {type(look.result(30)) for look in looks} == {str, list}
        assert len({each.result(30) for each in work}) == 300


def test_a_call_that_comes_as_the_session_closes_is_answered_or_learns_that_it_is_closed():
    """And no thread waits for ever."""
    for _ in range(20):
        begun = Barrier(5)

        def look(session: SyncSession, begun: Barrier) -> str:
            begun.wait(30)
            try:
                for _ in range(1_000_000):
                    session.notice()
            except SessionClosed as error:
                return str(error)
            return "still open"

        with ThreadPoolExecutor(4) as threads:
            with opened() as session:
                looks = [threads.submit(look, session, begun) for _ in range(4)]
                begun.wait(30)
            assert {each.result(30) for each in looks} == {"The session is not open. Use `with SyncSession() as session`."}


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_it_works_in_a_thread_of_any_event_loop(backend: str):
    def work() -> str:
        with opened() as session:
            return session.call("a", {}, lambda: session.call("b", {}, lambda: "x").text).text

    assert anyio.run(anyio.to_thread.run_sync, work, backend=backend) == "x"


def test_a_job_that_finished_in_the_background_is_told_of_once():
    finish = Event()
    with opened(asyncTimeoutSecs=0.01) as session:
        assert session.news() == ""
        session.call("slow", {}, lambda: str(finish.wait(30)))
        assert session.news() == ""
        finish.set()
        session.stop()
        assert "slow" in session.news()
        assert session.news() == ""


def test_a_failure_to_open_leaves_nothing_running():
    with opened() as first:
        store = first._session._life.opening.store
        with SyncSession(name="n", store=store), pytest.raises(Exception, match="n"), SyncSession(name="n", store=store):
            raise AssertionError("two live sessions of one name")


def test_it_has_every_method_of_the_asynchronous_one_with_the_same_arguments():
    """But those for hosts that live on an event loop anyway."""
    asynchronous = {"begin", "close", "news", "options", "note"}
    for name, method in vars(Session).items():
        if name.startswith("_") or name in asynchronous or isinstance(method, property):
            continue
        theirs = dict(inspect.signature(method).parameters)
        theirs.pop("answer", None)
        ours = dict(inspect.signature(getattr(SyncSession, name)).parameters)
        assert list(ours.items()) == list(theirs.items()), name
    ours, theirs = (inspect.signature(kind.__init__).parameters for kind in (SyncSession, Session))
    assert list(ours.items()) == list(theirs.items())


def test_a_registered_function_goes_through_the_gate():
    with opened() as session:

        @session.tool
        def dump(count: int) -> str:
            """A text of so many lines."""
            return "line\n" * count

        assert dump(2) == "line\nline\n"
        assert dump(5000).startswith(f"{TOO_LARGE} (25000 bytes")
        assert session.call("dump", {"count": 1}).text == "line\n"
        assert [kept.tool for kept in session.kept()] == ["dump"]
        assert (session.settings, dump.__doc__) == (Settings(), "A text of so many lines.")
