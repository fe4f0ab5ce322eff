"""Whatever a program passes to the public names, it gets an answer or an error of Overspill that says what to do."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio

from overspill import ContextBudget, Output, OverspillError, Session, Settings, SyncSession, ToolCall, extract
from overspill.errors import BadRequest, MalformedHandle, SettingsError
from overspill.store.memory import MemoryStore
from overspill.store.open import open_store
from overspill.testing import ScriptedModel, SlowTool

HALF = "\ud800"
LATE = 20.0
ODD: list[Any] = [
    *(None, True, 7, -1, 10**30, 1.5, math.nan, math.inf, "", "text", HALF, "a\x00b", "x" * 100_000, b"x", [], ["a"], [HALF]),
    *({}, {"a": 1}, {1: 2}, {"a": HALF}, {HALF: 1}, object(), ToolCall("1", "x"), Path("/nowhere"), len),
]


async def respond(**args: Any) -> str:
    return "done"


async def open_and_close(**given: Any) -> None:
    async with Session(Settings(storeDir="memory:"), **given):
        pass


WITHOUT_SESSION: dict[str, Callable[[Any], Any]] = {
    "Settings(preset)": lambda odd: Settings(odd),
    "Settings.for_tool": lambda odd: Settings().for_tool(odd),
    "Settings.for_tool(server)": lambda odd: Settings().for_tool("x", odd),
    "Settings(toolTimeout)": lambda odd: Settings(toolTimeout=odd),
    "Settings(toolOutput)": lambda odd: Settings(toolOutput=odd),
    "Settings(truncation.overrides)": lambda odd: Settings(truncation={"overrides": odd}),
    "Settings(servers)": lambda odd: Settings(servers=odd),
    "Settings(models)": lambda odd: Settings(models=odd),
    "Settings(model)": lambda odd: Settings(model=odd),
    "Settings(storeDir)": lambda odd: Settings(storeDir=odd),
    "Settings(mcpServers)": lambda odd: Settings(mcpServers=odd),
    "Settings(functions)": lambda odd: Settings(functions=odd),
    "Settings(providers)": lambda odd: Settings(providers=odd),
    "Settings(refs)": lambda odd: Settings(refs=odd),
    "Settings(odd=1)": lambda odd: Settings(**{odd: 1}) if isinstance(odd, str) else None,
    "ContextBudget(window)": lambda odd: ContextBudget(odd),
    "ContextBudget(used)": lambda odd: ContextBudget(100, used=odd),
    "ContextBudget(reserve_output)": lambda odd: ContextBudget(100, reserve_output=odd),
    "ContextBudget(buffer)": lambda odd: ContextBudget(100, buffer=odd),
    "ContextBudget.settle": lambda odd: ContextBudget(100).settle(odd),
    "ContextBudget.settle(mark)": lambda odd: ContextBudget(100).settle(1, odd),
    "ContextBudget.reserve": lambda odd: ContextBudget(100).reserve(odd),
    "ContextBudget.charge": lambda odd: ContextBudget(100).charge(odd),
    "ContextBudget.preview": lambda odd: ContextBudget(100).preview(odd),
    "open_store": lambda odd: open_store(odd),
    "open_store(run_bytes)": lambda odd: open_store("memory:", run_bytes=odd),
    "Output": lambda odd: Output(odd) if not isinstance(odd, list) else None,
    "ToolCall(id)": lambda odd: ToolCall(odd, "x"),
    "ToolCall(name)": lambda odd: ToolCall("1", odd),
    "ToolCall(kind)": lambda odd: ToolCall("1", "x", kind=odd),
    "Session(settings)": lambda odd: Session(odd),
    "Session(name)": lambda odd: open_and_close(name=odd),
    "Session(family)": lambda odd: open_and_close(family=odd),
    "Session(budget)": lambda odd: open_and_close(budget=odd),
    "Session(store)": lambda odd: open_and_close(store=odd),
    "Session(models)": lambda odd: open_and_close(models=odd),
    "Session(endpoints)": lambda odd: open_and_close(endpoints=odd),
    "extract(source)": lambda odd: extract(odd, "a question"),
    "extract(query)": lambda odd: extract("some text", odd),
    "extract(max_tokens)": lambda odd: extract("some text", "a question", max_tokens=odd),
    "extract(mode)": lambda odd: extract("some text", "a question", mode=odd),
    "extract(models)": lambda odd: extract("some text", "a question", models=odd),
    "extract(settings)": lambda odd: extract("some text", "a question", settings=odd),
    "extract(endpoints)": lambda odd: extract("some text", "a question", endpoints=odd),
    "extract(progress)": lambda odd: extract("some text", "a question", progress=odd) if odd is not len else None,
}

WITH_SESSION: dict[str, Callable[[Session, str, Any], Any]] = {
    "call(name)": lambda s, id, odd: s.call(odd, {}, respond),
    "call(registered)": lambda s, id, odd: s.call(odd, {}),
    "call(args)": lambda s, id, odd: s.call("t", odd, respond),
    "call(args of a registered tool)": lambda s, id, odd: s.call("registered", odd),
    "call(args of a retrieval tool)": lambda s, id, odd: s.call("get_artifact", odd),
    "call(an argument)": lambda s, id, odd: s.call("t", {"a": odd}, respond),
    "call(an argument beside a reference)": lambda s, id, odd: s.call("t", {"a": odd, "b": f"{{{{output:{id}}}}}"}, respond),
    "call(tool)": lambda s, id, odd: s.call("t", {}, odd),
    "call(id)": lambda s, id, odd: s.call("t", {}, respond, id=odd),
    "call(server)": lambda s, id, odd: s.call("t", {}, respond, server=odd),
    "call(kind)": lambda s, id, odd: s.call("t", {}, respond, kind=odd),
    "call(errors)": lambda s, id, odd: s.call("t", {}, respond, errors=odd),
    "call(background)": lambda s, id, odd: s.call("t", {}, respond, background=odd),
    "call(check)": lambda s, id, odd: s.call("t", {}, respond, check=odd),
    "turn(calls)": lambda s, id, odd: s.turn(odd),
    "turn(a call)": lambda s, id, odd: s.turn([odd]),
    "turn(execute)": lambda s, id, odd: s.turn([ToolCall("1", "x")], odd),
    "turn(answer)": lambda s, id, odd: s.turn([], answer=odd),
    "turn(model)": lambda s, id, odd: s.turn([ToolCall("1", "tool_output", {"handle": id, "extract": "line"})], model=odd),
    "turn(args)": lambda s, id, odd: s.turn([ToolCall("1", "registered", odd)]),
    "turn(args of a retrieval tool)": lambda s, id, odd: s.turn([ToolCall("1", "get_artifact", odd)]),
    "start(name)": lambda s, id, odd: s.start(odd, {}, respond),
    "start(args)": lambda s, id, odd: s.start("t", odd, respond),
    "start(tool)": lambda s, id, odd: s.start("t", {}, odd),
    "invoke(name)": lambda s, id, odd: s.invoke(odd),
    "invoke(id)": lambda s, id, odd: s.invoke("get_artifact", {"id": id}, id=odd),
    "owns": lambda s, id, odd: s.owns(odd),
    "tools": lambda s, id, odd: s.tools(odd),
    "keep": lambda s, id, odd: s.keep(odd),
    "keep(name)": lambda s, id, odd: s.keep("data", odd),
    "keep(call)": lambda s, id, odd: s.keep("data", call=odd),
    "open": lambda s, id, odd: s.open(odd).close(),
    "extract(handle)": lambda s, id, odd: s.extract(odd, "line"),
    "extract(query)": lambda s, id, odd: s.extract(id, odd),
    "extract(mode)": lambda s, id, odd: s.extract(id, "line", mode=odd),
    "extract(max_tokens)": lambda s, id, odd: s.extract(id, "line", max_tokens=odd),
    "extract(models)": lambda s, id, odd: s.extract(id, "line", models=odd),
    "extract(progress)": lambda s, id, odd: s.extract(id, "line", progress=odd) if odd is not len else None,
    "tool": lambda s, id, odd: s.tool(odd),
    "note": lambda s, id, odd: s.note(odd),
}
ARGUMENTS: dict[str, dict[str, list[str]]] = {
    "tool_output": {"": [], "handle": ["extract"], "extract": ["handle"], "mode": ["handle", "extract"]},
    "get_tool_output": {"": [], "id": [], "mode": ["id"], "query": ["id"], "slice": ["id"], "pattern": ["id"], "from": ["id"]},
    "get_artifact": {"": [], "id": [], "lines": ["id"], "bytes": ["id"], "query": ["id"], "from": ["id"], "start_line": ["id"]},
}
MODE_OF = {"query": "query", "slice": "slice", "pattern": "grep"}


async def outcome(work: Callable[[], Any]) -> BaseException | None:
    with anyio.fail_after(LATE):
        try:
            found = work()
            if isinstance(found, Awaitable):
                await found
        except Exception as error:
            return error
    return None


@pytest.mark.anyio
@pytest.mark.parametrize("use", WITHOUT_SESSION)
async def test_every_odd_value_is_used_or_refused_clearly(use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)  # a name may be taken for a relative path
    for odd in ODD:
        error = await outcome(lambda odd=odd: WITHOUT_SESSION[use](odd))
        assert error is None or isinstance(error, OverspillError), (use, odd, error)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("use", WITH_SESSION)
async def test_every_odd_value_leaves_the_session_working(use: str):
    async with Session(store=MemoryStore()) as session:

        @session.tool
        def registered(a: str = "") -> str:
            return "registered"

        id = (await session.keep("line\n" * 5000)).handle
        for odd in ODD:
            error = await outcome(lambda odd=odd: WITH_SESSION[use](session, id, odd))
            assert error is None or isinstance(error, OverspillError), (use, odd, error)
        assert (await session.call("t", {"a": HALF}, respond)).text == "done"
        assert session.accounting()


@pytest.mark.anyio
@pytest.mark.parametrize(("tool", "argument"), [(tool, each) for tool, args in ARGUMENTS.items() for each in args])
async def test_a_models_odd_arguments_are_answered(tool: str, argument: str):
    """An error would have to be caught by every host."""
    async with Session(store=MemoryStore()) as session:
        id = (await session.keep('{"a": ["line"]}\n' * 2000)).handle
        usual = {"id": id, "handle": id, "extract": "line", "mode": MODE_OF.get(argument, "raw")}
        if tool == "tool_output":
            usual["mode"] = "auto"
        needed = {key: usual[key] for key in (*ARGUMENTS[tool][argument], *(["mode"] if tool == "get_tool_output" else []))}
        for odd in ODD:
            given: Any = {**needed, argument: odd} if argument else odd
            with anyio.fail_after(LATE):
                reply = await session.invoke(tool, given)
            assert reply.text, (tool, argument, odd)


@pytest.mark.anyio
async def test_arguments_that_are_no_object_are_refused_in_words_for_model_and_host():
    async with Session(store=MemoryStore()) as session:
        words = "The arguments of t must be an object with a value for each name, not list."
        mistake: Any = ["a", 1]
        reply = await session.call("t", mistake, respond)
        assert (reply.text, reply.is_error) == (words, True)
        with pytest.raises(BadRequest) as caught:
            await session.call("t", mistake, respond, errors="raise")
        assert str(caught.value) == words
        (answer,) = await session.turn([ToolCall("1", "t", mistake)], lambda call: "never")
        assert (answer.text, answer.is_error) == (words, True)
        answered = await session.invoke("get_artifact", mistake)
        assert words.replace("of t", "of get_artifact") in answered.text
        assert answered.is_error
        with pytest.raises(BadRequest, match="must have strings as names, not int"):
            await session.start("t", {7: 1}, respond)  # pyright: ignore[reportArgumentType]


@pytest.mark.anyio
async def test_half_a_character_in_arguments_reaches_the_tool_and_breaks_nothing():
    """Models write them when an answer is cut in the middle of an emoji."""
    model = ScriptedModel(["found nothing"] * 3)
    got: list[str] = []

    def fetch(q: str, source: str = "") -> str:
        got.append(q)
        return "line\n" * 5000

    async with Session(Settings(toolOutput={"models": ["test/m"]}), store=MemoryStore(), models={"test/m": model}) as session:
        reply = await session.call("fetch", {"q": HALF}, fetch)
        assert reply.kept is not None
        again = await session.call("fetch", {"q": HALF, "source": f"{{{{output:{reply.kept.handle}}}}}"}, fetch)
        assert not again.is_error
        answer = await session.invoke("tool_output", {"handle": reply.kept.handle, "extract": f"line {HALF}"})
        assert "line" in answer.text
        session.notice()
        assert got == [HALF, HALF]
        assert session.accounting()


ANOTHER_LOOP = "This session belongs to another event loop. Use it only in the loop that opened it, or use SyncSession"


def in_another_thread(work: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join(LATE)
    return found[0]


def run_on(loop: str, work: Callable[[], Awaitable[Any]]) -> Any:
    return anyio.run(work, backend=loop)


@pytest.mark.parametrize("second", ["asyncio", "trio"])
@pytest.mark.parametrize("first", ["asyncio", "trio"])
def test_a_session_in_a_second_event_loop_says_so(first: str, second: str):
    async def main() -> None:
        async with Session(store=MemoryStore()) as session:
            kept = await session.keep("data")
            uses: list[Callable[[], Any]] = [
                lambda: session.call("t", {}, respond),
                lambda: session.turn([ToolCall("1", "t")], lambda call: "r"),
                lambda: session.start("t", {}, respond),
                lambda: session.invoke("wait_for_tool_output"),
                lambda: session.keep("more"),
                lambda: session.extract(kept.handle, "data"),
                session.stop,
                session.abort,
                session.begin,
                session.close,
            ]
            for use in uses:

                def elsewhere(use: Callable[[], Any] = use) -> Any:
                    return in_another_thread(lambda: run_on(second, lambda: outcome(use)))

                error = await anyio.to_thread.run_sync(elsewhere)
                assert isinstance(error, BadRequest)
                assert str(error).startswith(ANOTHER_LOOP)
            assert (await session.call("t", {}, respond)).text == "done"
            assert await anyio.to_thread.run_sync(lambda: session.open(kept.handle).bytes()) == b"data"

    run_on(first, main)


def test_a_session_whose_event_loop_has_ended_can_still_be_closed_and_opened_again():
    store = MemoryStore()
    session = Session(Settings(asyncTimeoutSecs=0.01), store=store)

    async def first() -> None:
        await session.begin()
        await session.call("slow", {}, SlowTool("late"))

    async def second() -> str:
        with pytest.raises(BadRequest, match=ANOTHER_LOOP):
            await session.call("t", {}, respond)
        await session.close()
        async with session:
            return (await session.call("t", {}, respond)).text

    asyncio.run(first())
    assert asyncio.run(second()) == "done"


def test_a_blocking_session_works_beside_any_loop():
    with SyncSession(store=MemoryStore()) as session:

        async def main() -> str:
            return session.call("t", {}, respond).text

        assert asyncio.run(main()) == "done"
        assert trio.run(main) == "done"


def test_a_blocking_session_that_is_called_in_its_own_thread_says_so():
    with SyncSession(store=MemoryStore()) as session:

        async def outer() -> str:
            return session.call("t", {}, respond).text

        reply = session.call("outer", {}, outer)
        assert reply.is_error
        assert "This session was called from its own thread, which would then wait for itself." in reply.text
        assert session.call("outer", {}, lambda: session.call("t", {}, respond).text).text == "done"


def test_errors_name_the_value_and_what_is_allowed():
    odd: Any = "12"
    with pytest.raises(SettingsError, match=r"^`window` must be a whole number of at least 1, not '12'\.$"):
        ContextBudget(odd)
    with pytest.raises(SettingsError, match=r"^A store's place must be a path or URL as a string, not int\.$"):
        open_store(7)  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadRequest, match=r"^`name` of a call must be a string, not None\.$"):
        ToolCall("1", None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(MalformedHandle, match=r"^'7' is not a handle\."):
        asyncio.run(_open_seven())


async def _open_seven() -> None:
    async with Session(store=MemoryStore()) as session:
        session.open(7)  # pyright: ignore[reportArgumentType]
