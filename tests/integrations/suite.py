"""What every adapter does, each behaviour once. Runs in a framework's own environment: see `running.py`.

A driver lists what its framework cannot do, with the reason. Everything else has to work.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from overspill import Session, Settings
from tests.integrations.driving import Call, Driver, Request, Scripted
from tests.waiting import list_paths, until

LINES = [f"{number:06} request served in {number % 97} ms" for number in range(16_500)]
NEEDLE = "order 4711 was refused: card expired"
LOG = "\n".join([*LINES[:7_000], NEEDLE, *LINES[7_000:]])  # 500 KB
ONE_LINE = json.dumps(
    [{"id": number, "note": NEEDLE if number == 9_000 else f"order {number} is paid"} for number in range(22_000)]
)
NAME = re.compile(r"out_\w+")
_THREADS = 8


def find_name(text: str) -> str:
    found = NAME.search(text)
    assert found, text[:500]
    return found[0]


def find_job(text: str) -> str:
    found = re.search(r"Tool Output ID: (\S+)", text)
    assert found, text[:500]
    return found[1]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(storeDir=str(tmp_path))


@pytest.fixture
def quick(tmp_path: Path) -> Settings:
    """Settings under which a tool that waits goes to the background."""
    return Settings(storeDir=str(tmp_path), asyncTimeoutSecs=0.05)


def read_log() -> str:
    """Read the log."""
    return LOG


def extract(request: Request, words: str, call: str = "c1") -> list[Call]:
    return [Call("get_tool_output", {"id": find_name(request.results[call]), "mode": "ask", "query": words}, "c2")]


async def test_a_small_result_is_untouched(driver: Driver, settings: Settings):
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    script = Scripted([Call("add", {"a": 2, "b": 3})], lambda request: request.results["c1"])
    assert await driver.agent([add], script, settings=settings).run("2 + 3") == "5"


async def test_a_small_structured_result_is_what_the_bare_framework_sends(driver: Driver, settings: Settings):
    def find(name: str) -> dict[str, Any]:
        """Find a person."""
        return {"name": name, "tags": ["a", "b"], "age": 7, "ü": None}

    sent: list[str] = []
    for bare in (True, False):
        script = Scripted([Call("find", {"name": "Ann"})], "done")
        await driver.agent([find], script, **({"bare": True} if bare else {"settings": settings})).run("Who is Ann?")
        sent.append(script.last.results["c1"])
    assert sent[0] == sent[1]


async def test_a_large_result_becomes_a_name_that_the_model_can_ask(driver: Driver, settings: Settings):
    script = Scripted(
        [Call("read_log")],
        lambda request: extract(request, "the order that was refused"),
        lambda request: request.results["c2"],
    )
    answer = await driver.agent([read_log], script, settings=settings).run("Which order was refused?")
    assert NEEDLE in answer
    assert len(script.requests[1].results["c1"]) < 10_000


async def test_a_needle_in_one_line_of_json_is_found(driver: Driver, settings: Settings):
    def export() -> str:
        """Export all orders."""
        return ONE_LINE

    def grep(request: Request) -> list[Call]:
        id = find_name(request.results["c1"])
        return [Call("get_tool_output", {"id": id, "mode": "grep", "pattern": "refused"}, "c2")]

    script = Scripted([Call("export")], grep, lambda request: request.results["c2"])
    assert NEEDLE in await driver.agent([export], script, settings=settings).run("go on")


async def test_the_retrieval_tools_are_offered_from_the_first_request_and_never_change(driver: Driver, settings: Settings):
    script = Scripted([Call("read_log")], [Call("read_log", {}, "c2")], "done")
    await driver.agent([read_log], script, settings=settings).run("Read it.")
    first, *others = [json.dumps(request.tools, sort_keys=True, default=str) for request in script.requests]
    assert {"get_tool_output", "read_log"} <= set(script.requests[0].tools)
    assert others == [first, first]


async def test_a_slow_tool_goes_to_the_background_and_is_fetched(driver: Driver, quick: Settings):
    go_on = asyncio.Event()

    async def build() -> str:
        """Build everything."""
        await go_on.wait()
        return "the build passed"

    def wait(request: Request) -> list[Call]:
        assert "the build passed" not in request.results["c1"]
        go_on.set()
        return [Call("get_tool_output", {"id": find_job(request.results["c1"]), "mode": "wait"}, "c2")]

    script = Scripted([Call("build")], wait, lambda request: request.results["c2"])
    assert "the build passed" in await driver.agent([build], script, settings=quick).run("Build it.")


async def test_a_slow_synchronous_tool_does_not_block_the_loop(driver: Driver, quick: Settings):
    go_on = threading.Event()

    def build() -> str:
        """Build everything."""
        assert go_on.wait(30)
        return "the build passed"

    def wait(request: Request) -> list[Call]:
        go_on.set()
        return [Call("get_tool_output", {"id": find_job(request.results["c1"]), "mode": "wait"}, "c2")]

    script = Scripted([Call("build")], wait, lambda request: request.results["c2"])
    try:
        assert "the build passed" in await driver.agent([build], script, settings=quick).run("Build it.")
    finally:
        go_on.set()


async def test_a_late_result_is_announced(driver: Driver, tmp_path: Path):
    overrides = {"look": {"async": False}}  # or each look would end long before the build does, if the machine is busy
    settings = Settings(storeDir=str(tmp_path), asyncTimeoutSecs=0.05, truncation={"overrides": overrides})
    go_on = asyncio.Event()

    async def build() -> str:
        """Build everything."""
        await go_on.wait()
        return "the build passed"

    async def look() -> str:
        """Look around."""
        go_on.set()
        await until(lambda: any(b'"ready"' in path.read_bytes() for path in tmp_path.rglob("*.jsonl")))
        return "looked"

    requests: list[Request] = []

    def script(request: Request) -> Any:
        requests.append(request)
        if len(requests) == 1:
            return [Call("build")]
        is_announced = "Ready (1)" in request.text or "Completed tools" in request.text
        return "announced" if is_announced else [Call("look", {}, f"c{len(requests)}")] if len(requests) < 20 else "never"

    assert await driver.agent([build, look], script, settings=settings).run("Build it.") == "announced"


async def test_two_large_parallel_results_share_the_budget(driver: Driver, settings: Settings):
    def read(name: str) -> str:
        """Read a file."""
        return f"{name} " * 1_500

    script = Scripted([Call("read", {"name": "alpha"}, "c1"), Call("read", {"name": "beta"}, "c2")], "done")
    await driver.agent([read], script, settings=settings, budget=2_500).run("Read both.")
    sizes = sorted(len(text) for text in script.last.results.values())
    assert len(sizes) == 2
    assert sizes[0] < 5_000 < 7_000 < sizes[1]  # one is whole, and the other is less than two thirds of it


async def test_a_tool_that_raises_is_treated_as_the_bare_framework_does(driver: Driver, settings: Settings):
    def fail() -> str:
        """Fail."""
        raise ValueError("the disk is full")

    async def outcome(**options: Any) -> str:
        script = Scripted([Call("fail")], lambda request: request.results["c1"])
        try:
            return await driver.agent([fail], script, **options).run("Fail.")
        except Exception as error:
            return f"raised {type(error).__name__}: {error}"

    bare = await outcome(bare=True)
    assert await outcome(settings=settings) == bare
    assert "the disk is full" in bare or "error occurred" in bare  # some do not tell the model what went wrong


async def test_what_the_conversation_asks_for_is_shown_first(driver: Driver, tmp_path: Path):
    """And nothing of it in a conversation that does not ask for it."""

    def read_times() -> str:
        """Read the log."""
        lines = [f"2026-11-16 12:{n // 60 % 60:02}:{n % 60:02} INFO request {n} served in {n % 97} ms" for n in range(10_000)]
        return "\n".join([*lines[:5_000], late, *lines[5_000:]])

    late = "2026-11-16 13:00:00 ERROR request 99311 timed out after 30 s"
    settings = Settings(storeDir=str(tmp_path), intentWithinSecs=30)  # for a loaded machine
    for prompt, is_asked in (("Which requests timed out?", True), ("Read it.", False)):
        script = Scripted([Call("read_times")], lambda request: request.results["c1"])
        answer = await driver.agent([read_times], script, settings=settings).run(prompt)
        assert (late in answer) is is_asked
        assert len(answer) < 10_000


async def test_a_stored_output_can_be_an_argument(driver: Driver, settings: Settings):
    def count(text: str) -> int:
        """Count characters."""
        return len(text)

    def pass_on(request: Request) -> list[Call]:
        return [Call("count", {"text": "{{output:" + find_name(request.results["c1"]) + "}}"}, "c2")]

    script = Scripted([Call("read_log")], pass_on, lambda request: request.results["c2"])
    assert await driver.agent([read_log, count], script, settings=settings).run("Count it.") == str(len(LOG))


async def test_cancelling_the_run_cancels_the_tool(driver: Driver, settings: Settings):
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def hang() -> str:
        """Hang."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    run = asyncio.ensure_future(driver.agent([hang], Scripted([Call("hang")], "done"), settings=settings).run("Hang."))
    await asyncio.wait_for(started.wait(), 30)
    run.cancel()
    with pytest.raises((asyncio.CancelledError, Exception)):
        await run
    await asyncio.wait_for(cancelled.wait(), 30)


async def test_a_run_that_times_out_cancels_the_tool(driver: Driver, settings: Settings):
    cancelled = asyncio.Event()

    async def hang() -> str:
        """Hang."""
        late.reschedule(asyncio.get_running_loop().time())
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    agent = driver.agent([hang], Scripted([Call("hang")], "done"), settings=settings)
    with pytest.raises((TimeoutError, Exception)):
        async with asyncio.timeout(60) as late:
            await agent.run("Hang.")
    await asyncio.wait_for(cancelled.wait(), 30)


async def test_a_streaming_run_gets_the_same(driver: Driver, settings: Settings):
    script = Scripted(
        [Call("read_log")], lambda request: extract(request, "the order that was refused"), lambda request: request.results["c2"]
    )
    agent = driver.agent([read_log], script, settings=settings)
    assert NEEDLE in "".join([piece async for piece in agent.stream("Which order was refused?")])


def test_a_synchronous_run_gets_the_same(driver: Driver, settings: Settings):
    script = Scripted(
        [Call("read_log")], lambda request: extract(request, "the order that was refused"), lambda request: request.results["c2"]
    )
    assert NEEDLE in driver.agent([read_log], script, settings=settings).run_sync("Which order was refused?")


@pytest.mark.parametrize("named", [False, True])
async def test_one_agent_serves_two_users_at_once(driver: Driver, settings: Settings, named: bool):
    """Neither resolves the other's short name or handle."""
    names: dict[str, str] = {}
    both = asyncio.Event()

    async def read(user: str) -> str:
        """Read somebody's mail."""
        return f"secret of {user}\n{LOG}"

    async def meet() -> str:
        """Wait for the other one."""
        await both.wait()
        return "met"

    def script(request: Request) -> Any:
        user = "ann" if "I am ann" in request.text else "bob"
        match len(request.results):
            case 0:
                return [Call("read", {"user": user}, "c1")]
            case 1:
                names[user] = find_name(request.results["c1"])
                if len(names) == 2:
                    both.set()
                return [Call("meet", {}, "c2")]
            case 2:
                other = names["bob" if user == "ann" else "ann"]
                return [
                    Call("get_tool_output", {"id": other, "mode": "slice", "slice": {"lines": "1-2"}}, "c3"),
                    Call("get_tool_output", {"id": names[user], "mode": "slice", "slice": {"lines": "1-2"}}, "c4"),
                ]
        return f"theirs: {request.results['c3']} mine: {request.results['c4']}"

    agent = driver.agent([read, meet], script, settings=settings)
    runs = [agent.run(f"I am {user}", conversation=user if named else "") for user in ("ann", "bob")]
    for user, answer in zip(("ann", "bob"), await asyncio.gather(*runs), strict=True):
        theirs, mine = answer.split("mine: ")
        assert "secret" not in theirs
        assert f"secret of {user}" in mine


async def test_a_conversation_that_is_resumed_reads_an_earlier_output(driver: Driver, settings: Settings, tmp_path: Path):
    """In another process, as after a restart."""
    script = Scripted([Call("read_log")], lambda request: find_name(request.results["c1"]))
    name = await driver.agent([read_log], script, settings=settings).run("Read it.", conversation="customer 7/ü")
    code = "import sys; from tests.integrations.suite import resume; resume(*sys.argv[1:])"
    command = [sys.executable, "-c", code, type(driver).__module__.rpartition(".")[2], str(tmp_path), name]
    resumed = await anyio.run_process(command, check=False)
    assert resumed.returncode == 0, resumed.stderr.decode()[-3000:]
    assert NEEDLE in resumed.stdout.decode()


def resume(framework: str, store: str, name: str) -> None:
    from tests.integrations.conftest import load_driver  # noqa: PLC0415 - only in the second process

    script = Scripted(
        [Call("get_tool_output", {"id": name, "mode": "grep", "pattern": "refused"})], lambda request: request.results["c1"]
    )
    agent = load_driver(framework).agent([read_log], script, settings=Settings(storeDir=store))
    print(asyncio.run(agent.run("Which order was refused?", conversation="customer 7/ü")))


async def test_a_run_leaves_nothing_behind(driver: Driver, tmp_path: Path):
    settings = Settings(storeDir=str(tmp_path), retention="session")
    script = Scripted([Call("read_log")], "done")
    agent = driver.agent([read_log], script, settings=settings)
    assert await agent.run("Read it.") == "done"
    assert await is_soon_empty(tmp_path)


async def test_a_run_that_fails_leaves_nothing_behind(driver: Driver, tmp_path: Path):
    settings = Settings(storeDir=str(tmp_path), retention="session")

    def break_down(request: Request) -> Any:
        raise ConnectionError("the model is gone")

    # A worker thread of anyio keeps the context in which it was started, so let all that a busy machine may need start here.
    started = threading.Barrier(_THREADS)
    async with anyio.create_task_group() as group:
        for _ in range(_THREADS):
            group.start_soon(anyio.to_thread.run_sync, started.wait)
    await driver.agent([read_log], Scripted([Call("read_log")], "done"), settings=settings).run("Read it.")
    script = Scripted([Call("read_log")], *[break_down] * 9)  # some ask again
    agent = driver.agent([read_log], script, settings=settings)
    with pytest.raises(Exception, match="the model is gone"):
        await agent.run("Read it.")
    assert await is_soon_empty(tmp_path)


async def is_soon_empty(place: Path) -> bool:
    with anyio.move_on_after(30):
        while any(path.name.startswith("session-") for path in list_paths(place)):
            gc.collect()
            await anyio.sleep(0.05)
        return True
    return False


async def test_a_session_can_be_shared(driver: Driver, settings: Settings):
    async with Session(settings) as session:
        script = Scripted([Call("read_log")], lambda request: find_name(request.results["c1"]))
        name = await driver.agent([read_log], script, session=session).run("Read it.")
        with session.open(name) as stored:
            assert stored.bytes() == LOG.encode()


async def test_options_that_make_no_sense_are_refused(driver: Driver, settings: Settings):
    with pytest.raises(Exception, match="settings must be Settings"):
        driver.agent([read_log], Scripted("done"), settings={"preset": "slow"})
    with pytest.raises(Exception, match="own settings"):
        driver.agent([read_log], Scripted("done"), settings=settings, session=Session())


def test_the_program_on_its_page_runs(
    driver: Driver, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    page = f"integrations-{request.config.getoption('--framework').replace('_', '-')}.md"
    source = (Path(__file__).parents[2] / "docs" / page).read_text("utf-8").split("```py\n")[1].split("```")[0]
    script = Scripted(
        [Call("read_log", {"day": "2026-11-16"})],
        lambda request: extract(request, "the order that was refused"),
        lambda request: request.results["c2"],
    )
    assert "order 4711 was refused" in driver.run_page(source, script)
