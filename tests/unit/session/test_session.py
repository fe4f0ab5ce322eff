"""A session: opens, answers, keeps, ends; what it leaves behind is what retention says."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from threading import Event
from typing import Any, get_args

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from extras import OFFERED
from frames import TOO_LARGE

import overspill
from overspill import ContextBudget, Session, Settings
from overspill.errors import BadRequest, ExpiredHandle, NameInUse, SessionClosed, SettingsError, StoreError, UnknownHandle
from overspill.retrieval.definitions import Format
from overspill.store.files.shelf import LiveFileShelf
from overspill.store.files.store import FileStore
from overspill.store.memory import MemoryStore
from overspill.store.open import file_store
from overspill.store.protocols import KeepLimits, Retention
from overspill.truncate import STRATEGIES, Cut, Shape
from overspill.types import Output, ToolCall

BIG = "line of text\n" * 2000


def at(tmp_path: Path, **settings: Any) -> Settings:
    return Settings(storeDir=str(tmp_path), **settings)


def files_in(place: Path) -> list[Path]:
    return [path for path in place.rglob("*") if path.is_file()]


@pytest.mark.promise("nothing-lost")
async def test_a_large_output_is_in_an_owner_only_file_while_the_session_lives(tmp_path: Path):
    async with Session(at(tmp_path)) as session:
        reply = await session.call("dump", {}, lambda: BIG)
        assert reply.kept is not None
        (file,) = [path for path in files_in(tmp_path) if path.name == reply.kept.id]
        assert file.read_text() == BIG
        assert file.parent.name == f"session-{session.id}"
        assert file.parent.parent.name.startswith("overspill-")
        assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)


@pytest.mark.parametrize(("retention", "left"), [("session", False), ("process", True), ("keep", True)])
async def test_what_is_left_after_a_session(tmp_path: Path, retention: str, left: bool):
    store = FileStore(tmp_path)
    async with Session(Settings(retention=retention), store=store) as session:
        reply = await session.call("dump", {}, lambda: BIG)
        assert reply.kept is not None
    assert any(path.name == reply.kept.id for path in files_in(tmp_path)) is left
    store.close()
    assert any(path.name == reply.kept.id for path in files_in(tmp_path)) is (retention == "keep")


@pytest.mark.parametrize("store", [MemoryStore, FileStore], ids=["memory", "files"])
@pytest.mark.both_loops
async def test_a_named_session_is_opened_again_with_all_it_had(tmp_path: Path, store: Any):
    place = store() if store is MemoryStore else store(tmp_path)
    async with Session(name="research", store=place) as session:
        reply = await session.call("dump", {"path": "a.txt"}, lambda path: BIG)
        await session.call("dump", {}, lambda: "small")
        assert reply.kept is not None
        first = session.id
    async with Session(name="research", store=place) as session:
        assert session.id == first
        assert session.counters.calls == 2
        for spelling in (reply.kept.handle, reply.kept.artifact_id):
            with session.open(spelling) as stored:
                assert (stored.text(), stored.kept) == (BIG, reply.kept)
            page = await session.invoke("get_artifact", {"id": spelling, "lines": "1-1"})
            assert page.text == "line of text\n"
        assert [tool["name"] for tool in session.tools()] == OFFERED
        again = await session.call("dump", {}, lambda: BIG)
        assert again.kept is not None
        assert again.kept.session == first
    place.close()


async def test_a_name_belongs_to_one_live_session(tmp_path: Path):
    async with Session(at(tmp_path), name="research"):
        with pytest.raises(NameInUse):
            await Session(at(tmp_path), name="research").begin()


class OpensWhenLet(FileStore):
    """So that a session can be cancelled while its store is being opened."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked, self.let = Event(), Event()

    def open_shelf(
        self, session: str, *, name: str = "", retention: Retention = "session", limits: KeepLimits | None = None
    ) -> LiveFileShelf:
        self.asked.set()
        assert self.let.wait(timeout=30)
        return super().open_shelf(session, name=name, retention=retention, limits=limits)


async def opens_in_the_end(name: str, store: FileStore) -> None:
    with anyio.fail_after(10):
        while True:
            try:
                async with Session(name=name, store=store):
                    return
            except NameInUse:
                await anyio.lowlevel.checkpoint()


@pytest.mark.both_loops
async def test_a_session_that_is_cancelled_while_it_begins_lets_go_of_its_name(tmp_path: Path):
    store = OpensWhenLet(tmp_path)
    async with anyio.create_task_group() as group:
        group.start_soon(Session(name="research", store=store).begin)
        await anyio.to_thread.run_sync(store.asked.wait)
        group.cancel_scope.cancel()
        store.let.set()
    await opens_in_the_end("research", store)


async def test_a_task_that_is_cancelled_while_its_session_begins_lets_go_of_its_name(tmp_path: Path):
    store = OpensWhenLet(tmp_path)
    task = asyncio.ensure_future(Session(name="research", store=store).begin())
    await anyio.to_thread.run_sync(store.asked.wait)
    task.cancel()
    await asyncio.wait([task], timeout=30)
    assert task.cancelled()
    store.let.set()
    await opens_in_the_end("research", store)


async def test_keep_limits_are_applied_before_a_kept_session_opens(tmp_path: Path):
    store = FileStore(tmp_path)
    async with Session(name="old", store=store) as session:
        await session.keep(BIG, "note")
    for path in tmp_path.glob("*/session-*/*"):
        os.utime(path, (0, time.time() - 2 * 86_400))
    async with Session(Settings(keepBytes=1), name="new", store=store):
        assert [label.name for label in store.shelves()] == ["new"]
    store.close()


async def test_another_sessions_handle_is_refused_by_everything(tmp_path: Path):
    async with Session(at(tmp_path)) as mine, Session(at(tmp_path)) as theirs:
        kept = await theirs.keep("private", "note")
        for spelling in (kept.handle, kept.artifact_id, kept.id):
            with pytest.raises(UnknownHandle):
                mine.open(spelling)
            for name, args in (
                ("get_artifact", {"id": spelling}),
                ("get_tool_output", {"id": spelling, "mode": "slice"}),
            ):
                reply = await mine.invoke(name, args)
                assert reply.is_error
                assert "private" not in reply.text
            reply = await mine.invoke("tool_output", {"handle": spelling, "extract": "all"})
            assert "private" not in reply.text
            reply = await mine.call("send", {"x": f"{{{{output:{spelling}}}}}"}, lambda x: x)
            assert reply.is_error
            assert "private" not in reply.text


async def test_an_output_that_somebody_removed_has_expired(tmp_path: Path):
    store = FileStore(tmp_path)
    async with Session(store=store) as session:
        kept = await session.keep(BIG, "note")
        store.empty_shelf(session.id)
        with pytest.raises(ExpiredHandle):
            session.open(kept.handle)
        assert (
            await session.invoke("get_tool_output", {"id": kept.handle, "mode": "slice"})
        ).text == "Tool output expired. Call note again."
        assert (await session.invoke("get_artifact", {"id": kept.handle})).text.startswith("410: The output '")
    store.close()


def refused(work: Any) -> str:
    with pytest.raises(SessionClosed) as caught:
        work()
    return str(caught.value)


@pytest.mark.both_loops
async def test_a_session_that_is_not_open_says_how_to_open_it():
    session = Session()
    how = "The session is not open. Use `async with Session() as session`, or await session.begin() first."
    assert refused(lambda: session.id) == how
    assert refused(session.notice) == how
    assert refused(lambda: session.counters) == how
    assert refused(lambda: session.open("x")) == how
    for awaitable in (
        session.call("a", {}, lambda: "x"),
        session.turn([ToolCall("1", "a")]),
        session.invoke("get_artifact", {}),
        session.start("a", {}, lambda: "x"),
        session.keep("x"),
        session.stop(),
        session.abort(),
    ):
        with pytest.raises(SessionClosed):
            await awaitable
    assert await session.close() == []


@pytest.mark.both_loops
async def test_a_session_may_begin_and_end_without_a_block_and_twice():
    session = Session(store=MemoryStore())
    await session.begin()
    first = session.id
    await session.begin()
    assert session.id == first
    assert (await session.call("a", {}, lambda: "x")).text == "x"
    assert await session.close() == []
    assert await session.close() == []
    with pytest.raises(SessionClosed):
        await session.call("a", {}, lambda: "x")
    await session.begin()
    assert session.id != first
    await session.close()


@pytest.mark.both_loops
async def test_what_still_runs_is_cancelled_when_a_session_ends():
    ended = anyio.Event()

    async def crawl() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with Session(store=MemoryStore()) as session:
        await session.start("crawl", {}, crawl)
        await anyio.wait_all_tasks_blocked()
    assert ended.is_set()


@pytest.mark.both_loops
async def test_stopping_waits_for_what_runs():
    finish = anyio.Event()

    async def crawl() -> str:
        await finish.wait()
        return "done"

    async with Session(store=MemoryStore()) as session, anyio.create_task_group() as group:
        id = await session.start("crawl", {}, crawl)
        group.start_soon(session.stop)
        await anyio.wait_all_tasks_blocked()
        finish.set()
        while group.cancel_scope.cancel_called or "Running" in session.notice():
            await anyio.lowlevel.checkpoint()
        assert (await session.invoke("get_tool_output", {"id": id, "mode": "raw"})).text == "done"


@pytest.mark.both_loops
async def test_a_registered_tool_goes_through_the_gate():
    async with Session(Settings(previewChars=0), store=MemoryStore()) as session:

        @session.tool
        async def fetch(url: str, *, times: int = 1, **more: str) -> str:
            """Fetch a page."""
            return f"{url} {more}\n" * times

        assert (fetch.__name__, fetch.__doc__) == ("fetch", "Fetch a page.")
        assert await fetch("http://x", a="b") == "http://x {'a': 'b'}\n"
        assert (await fetch("http://x", times=5000)).startswith(f"{TOO_LARGE} (")
        reply = await session.call("fetch", {"url": "y", "times": 2})
        assert reply.text == "y {}\ny {}\n"
        assert session.counters.calls == 3
        with pytest.raises(TypeError):
            await fetch()  # type: ignore[call-arg]


async def test_a_registered_tool_raises_its_own_exception():
    error = ValueError("bad url")
    async with Session(store=MemoryStore()) as session:

        @session.tool
        def fetch(url: str) -> str:
            raise error

        with pytest.raises(ValueError, match="bad url") as caught:
            await fetch("x")
        assert caught.value is error


def test_a_function_without_names_for_its_arguments_cannot_be_a_tool():
    with pytest.raises(BadRequest) as caught:
        Session().tool(lambda *urls: urls)
    assert str(caught.value) == "<lambda> cannot be a tool: models pass arguments by name, and (*urls) has some without a name."


def test_a_function_named_like_one_of_our_tools_cannot_be_a_tool():
    def get_artifact(id: str) -> str:
        return id

    with pytest.raises(BadRequest) as caught:
        Session().tool(get_artifact)
    assert str(caught.value) == (
        "get_artifact cannot be a tool, because Overspill has a tool of that name. Rename your function."
    )


async def test_a_callable_object_is_registered_under_the_name_of_its_class():
    class Search:
        def __call__(self, q: str) -> str:
            return q

    async with Session(store=MemoryStore()) as session:
        session.tool(Search())
        assert (await session.call("Search", {"q": "x"})).text == "x"


async def test_an_unknown_tool_is_the_hosts_mistake_in_call():
    async with Session(store=MemoryStore()) as session:
        with pytest.raises(BadRequest) as caught:
            await session.call("nope", {})
        assert str(caught.value) == f"Unknown tool 'nope'. Known tools: {', '.join(OFFERED)}."
        with pytest.raises(BadRequest, match="Unknown tool 'nope'"):
            await session.start("nope")


async def test_a_tool_may_be_an_object_that_counts_as_false():
    class Empty(list[str]):
        def __call__(self) -> str:
            return "called"

    async with Session(store=MemoryStore()) as session:
        assert (await session.call("tool", {}, Empty())).text == "called"
        assert (await session.start("tool", {}, Empty())).startswith("art_")


async def test_our_own_tools_go_to_us_unless_a_tool_is_given():
    async with Session(store=MemoryStore()) as session:
        assert session.owns("get_artifact")
        assert not session.owns("search")
        assert (await session.call("wait_for_tool_output")).text == "No async tools running."
        assert (await session.call("wait_for_tool_output", {}, lambda: "the host's")).text == "the host's"


def failing() -> Iterator[str]:
    yield "some"
    raise OSError("gone")


IMAGE = {"type": "image", "data": "QUJD", "mimeType": "image/png"}


def failing_at_once() -> Iterator[str]:
    raise OSError("gone")
    yield


async def stream() -> AsyncIterator[str]:
    yield "a"
    yield "b"


@pytest.mark.parametrize(
    ("data", "stored"),
    [
        ("text", b"text"),
        (b"\0\xff", b"\0\xff"),
        ({"a": 1}, b'{"a":1}'),
        (stream, b"ab"),
        ([{"type": "text", "text": "x"}], b"x"),
        (
            [{"type": "text", "text": "x"}, IMAGE],
            b'[{"type":"text","text":"x"},{"type":"image","data":"QUJD","mimeType":"image/png"}]',
        ),
        (Output([{"type": "text", "text": "x"}]), b"x"),
        (Output([IMAGE]), b'[{"type":"image","data":"QUJD","mimeType":"image/png"}]'),
    ],
)
async def test_a_host_may_keep_anything(data: Any, stored: bytes):
    async with Session(store=MemoryStore()) as session:
        kept = await session.keep(data() if callable(data) else data, "report")
        assert session.open(kept.handle).bytes() == stored
        assert (kept.reason, kept.tool, kept.source, kept.missing) == ("requested", "report", "report", "")


async def test_what_a_host_cannot_keep_raises_and_is_not_made_up():
    async with Session(store=MemoryStore()) as session:
        with pytest.raises(BadRequest, match="cannot be written as JSON"):
            await session.keep(object())
        with pytest.raises(OSError, match="gone"):
            await session.keep(failing_at_once())
        with pytest.raises(BadRequest, match=r"^There is nothing to store as 'report': it is None\.$"):
            await session.keep(None, "report")
        assert session.counters.kept == 0
        kept = await session.keep(failing())
        assert session.open(kept.handle).bytes() == b"some"
        assert kept.missing == "the tool failed before it finished: OSError: gone"


@pytest.mark.both_loops
async def test_what_was_being_kept_when_its_host_was_cancelled_leaves_no_file(tmp_path: Path):
    async with Session(at(tmp_path, retention="keep")) as session:
        async with anyio.create_task_group() as group:
            flowing = anyio.Event()

            async def endless() -> AsyncIterator[bytes]:
                yield b"x" * 3_000_000
                flowing.set()
                await anyio.sleep_forever()

            group.start_soon(session.keep, endless())
            await flowing.wait()
            assert len(list(tmp_path.rglob("*.part"))) == 1
            group.cancel_scope.cancel()
        assert list(tmp_path.rglob("*.part")) == []


async def test_keeping_more_than_the_maximum_says_what_is_missing():
    async with Session(Settings(truncation={"max_artifact_size": 10}), store=MemoryStore()) as session:
        kept = await session.keep("0123456789ab")
        assert session.open(kept.handle).bytes() == b"0123456789"
        assert kept.missing == "one output may have at most 10 bytes (truncation.maxArtifactSize)."


async def test_keeping_where_nothing_can_be_stored_raises():
    async with Session(store=MemoryStore(run_bytes=1)) as session:
        await session.keep("x")
        with pytest.raises(StoreError):
            await session.keep("y")


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    (place := tmp_path / "disk").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)  # noqa: S607


async def test_a_read_only_place_is_said_when_the_session_begins(read_only: Path):
    with pytest.raises(StoreError, match=r"the file system is read-only\. Set storeDir to a place you can write to"):
        await Session(at(read_only)).begin()


async def test_a_place_that_is_a_file_is_said_when_the_session_begins(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError):
        await Session(at(tmp_path / "file")).begin()


def test_sessions_of_one_place_share_its_store(tmp_path: Path):
    assert file_store(str(tmp_path), 10) is file_store(str(tmp_path), 10)


async def test_a_relative_place_is_below_the_working_directory_of_when_the_session_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        monkeypatch.chdir(folder)
        session = Session(Settings(storeDir="outputs"))
        monkeypatch.chdir(tmp_path)
        async with session:
            kept = await session.keep("text")
            assert [path.relative_to(tmp_path).parts[:2] for path in tmp_path.rglob(kept.id)] == [(folder.name, "outputs")]


async def test_the_op_tree_tells_of_calls_that_still_wait_to_be_written():
    async with Session(store=MemoryStore()) as session:
        await session.call("search", {}, lambda: "x")
        assert "search" in str(session.op_tree())


async def test_a_host_may_extract_itself():
    async with Session(store=MemoryStore()) as session:
        kept = await session.keep("alpha\nneedle beta\ngamma\n", "note")
        found = await session.extract(kept.handle, "needle")
        assert "needle" in found.text


async def test_an_output_in_a_file_can_be_asked_again(tmp_path: Path):
    async with Session(at(tmp_path)) as session:
        kept = await session.keep(f"{BIG}the needle is red\n{BIG}the thread is blue\n{BIG}", "note")
        answers = [await session.extract(kept.handle, question) for question in ("needle", "thread")]
    assert [answer.strategy for answer in answers] == ["builtin", "builtin"]
    assert "the needle is red" in answers[0].text
    assert "the thread is blue" in answers[1].text


async def test_the_public_names_lead_to_the_same_things():
    async with Session(store=MemoryStore(), budget=ContextBudget(window=10)) as session:
        assert session.budget is not None
        assert session.settings == Settings()


@pytest.mark.both_loops
async def test_a_session_that_is_begun_twice_at_once_opens_once(tmp_path: Path):
    session = Session(Settings(storeDir=str(tmp_path)))
    async with anyio.create_task_group() as group:
        group.start_soon(session.begin)
        group.start_soon(session.begin)
    assert len(list(tmp_path.glob("overspill-*/session-*"))) == 1
    await session.close()


async def test_a_strategy_of_ones_own_can_be_named_in_the_settings():
    def shout(text: str, limit: int, shape: Shape) -> Cut:
        return Cut(text[:limit].upper(), "shout", 0, len(text) - limit)

    STRATEGIES["shout"] = shout
    try:
        settings = Settings(preset="artifacts", truncation={"inlineLimit": 5, "overrides": {"whisper": {"strategy": "shout"}}})
        async with Session(settings, store=MemoryStore()) as session:
            reply = await session.call("whisper", {}, lambda: "quiet words")
        assert reply.content[0] == {"type": "text", "text": "QUIET"}
    finally:
        del STRATEGIES["shout"]
    with pytest.raises(SettingsError, match=r"truncation\.defaultStrategy is 'shout' .*; allowed: one of head, tail, "):
        Settings(truncation={"defaultStrategy": "shout"})


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda s: s.call("x", {}, "text"), "The tool x must be callable, but is of type str."),
        (lambda s: s.start("x", {}, 3), "The tool x must be callable, but is of type int."),
        (lambda s: s.call("x", {}, str, errors="foo"), "errors is 'foo'; allowed: 'answer', 'raise'."),
        (lambda s: s.call("x", {}, str, background="no"), "background is 'no'; allowed: None, True, False, 'now'."),
        (lambda s: s.turn([{"name": "x"}]), "a call of the turn must be ToolCall(id, name, args), not dict."),
        (lambda s: s.extract("x", "y", max_tokens=0), "max_tokens is 0; it must be at least 1."),
    ],
)
async def test_a_hosts_mistake_is_named(ask: Any, said: str):
    async with Session(store=MemoryStore()) as session:
        with pytest.raises(BadRequest) as refused:
            await ask(session)
        assert str(refused.value) == said
        with pytest.raises(BadRequest) as refused:
            session.tools("foo")  # pyright: ignore
        assert str(refused.value) == f"format is 'foo'; allowed: {', '.join(map(repr, get_args(Format)))}."


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"settings": {"preset": "slow"}}, "settings must be Settings(…), not dict."),
        ({"budget": 5}, "budget must be ContextBudget(window=…), not int."),
    ],
)
def test_a_session_takes_what_it_says_it_takes(options: dict[str, Any], said: str):
    with pytest.raises(BadRequest) as refused:
        Session(**options)
    assert str(refused.value) == said


def test_the_package_knows_its_version():
    assert overspill.__version__ == version("overspill")


async def test_a_server_whose_arguments_take_long_to_check_delays_no_other_server() -> None:
    go, waiting, enough = Event(), Event(), 60  # more than the threads that all share

    def check_for_long(args: Mapping[str, Any]) -> str | None:
        waiting.set()
        go.wait(60)
        return None

    settings = Settings(refs={"allow": [{"from": "*", "to": "*"}]})
    async with Session(settings, store=MemoryStore()) as session:
        args = {"text": f"{{{{output:{(await session.keep('stored')).handle}}}}}"}

        async def call(server: str, check: Callable[[Mapping[str, Any]], str | None]) -> str:
            return (await session.call("echo", args, lambda text: text, server=server, check=check)).text

        async with anyio.create_task_group() as group:
            for _ in range(enough):
                group.start_soon(call, "slow", check_for_long)
            try:
                with anyio.fail_after(20):
                    while not waiting.is_set():  # noqa: ASYNC110  # threads have no other way to say so
                        await anyio.sleep(0.01)
                    assert await call("other", lambda args: None) == "stored"
            finally:
                go.set()
