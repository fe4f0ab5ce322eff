"""One session that several workers have open: each reads what the others keep, and waits for the tools that they run."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from skewed_clock import skew_clock
from waiting import until

from overspill import Session, handles
from overspill.errors import BadRequest, UnknownHandle
from overspill.store.files.store import FileStore
from overspill.store.protocols import Store
from overspill.text.humanize import format_short_size
from overspill.wording import replies, retrieval, slow_tools

pytestmark = pytest.mark.anyio
BIG = "line of text\n" * 2000
LEASE = 1.0
WORKER = """
import sys
import anyio
from overspill import Session
OPEN

async def crawl():
    await anyio.sleep_forever()

async def main():
    async with Session(name="team", shared=True, store=store) as session:
        kept = await session.keep("from another process", "note")
        job = await session.start("crawl", {}, crawl)
        await session.call("mark", {}, lambda: "x" * 50_000)
        print(kept.handle, job, flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""
OPENINGS = {
    "file": "from pathlib import Path\nfrom overspill.store.files.store import FileStore\nstore = FileStore(Path(sys.argv[1]))",
    "postgresql": (
        "from overspill.store.postgres.store import PostgresStore\n"
        "store = PostgresStore(sys.argv[1], tenant=sys.argv[2], lease_seconds=1.0)"
    ),
    "s3": "from overspill.store.objects.store import ObjectStore\nstore = ObjectStore(sys.argv[1], lease_seconds=1.0)",
}


class Place:
    """Where workers meet. Each `open` is a store of another worker."""

    def __init__(self, kind: str, url: str) -> None:
        self.kind, self.url, self.tenant = kind, url, handles.new()
        self.opened: list[Store] = []

    def open(self) -> Store:
        self.opened.append(self._make())
        return self.opened[-1]

    def _make(self) -> Store:
        if self.kind == "file":
            return FileStore(Path(self.url))
        if self.kind == "s3":
            from overspill.store.objects.store import ObjectStore  # noqa: PLC0415  # only where the package is

            return ObjectStore(self.url, lease_seconds=LEASE)
        from overspill.store.postgres.store import PostgresStore  # noqa: PLC0415  # only where the package is

        return PostgresStore(self.url, tenant=self.tenant, lease_seconds=LEASE)

    def command(self, *, skew: int = 0) -> list[str]:
        return [sys.executable, "-c", skew_clock(skew) + WORKER.replace("OPEN", OPENINGS[self.kind]), self.url, self.tenant]


@pytest.fixture(params=["file", *(pytest.param(name, marks=pytest.mark.slow) for name in ("postgresql", "s3"))])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    fixture = {"file": "tmp_path", "postgresql": "postgres_server", "s3": "s3_url"}[request.param]
    place = Place(request.param, str(request.getfixturevalue(fixture)))
    yield place
    for store in place.opened:
        store.close()


def shared(place: Place, name: str = "team") -> Session:
    return Session(name=name, shared=True, store=place.open())


async def test_what_one_worker_keeps_the_others_read_immediately_and_nobody_else(place: Place):
    async with shared(place) as one, shared(place) as two, shared(place, "others") as stranger:
        kept = await one.keep(BIG, "dump")
        for spelling in (kept.handle, kept.artifact_id, kept.name):
            assert two.open(spelling).text() == BIG
            with pytest.raises(UnknownHandle):
                stranger.open(spelling)
        later = await two.keep("more", "note")
        assert {each.id for each in one.kept()} == {each.id for each in two.kept()} == {kept.id, later.id}
        asked = {"id": kept.name, "mode": "slice", "slice": {"lines": "1-1"}}
        assert (await two.invoke("get_tool_output", asked)).text.startswith("line of text")


async def test_a_tool_that_one_worker_runs_is_waited_for_and_read_by_another(place: Place):
    async with shared(place) as one, shared(place) as two:
        finish = anyio.Event()

        async def crawl() -> str:
            await finish.wait()
            return BIG

        id = await one.start("crawl", {}, crawl)
        asked = {"id": id, "mode": "slice", "slice": {"lines": "1-1"}}
        assert (await two.invoke("get_tool_output", asked)).text == retrieval.not_ready()
        async with anyio.create_task_group() as group:
            answers: list[str] = []

            async def wait() -> None:
                answers.append((await two.invoke("wait_for_tool_output")).text)

            group.start_soon(wait)
            finish.set()
        assert answers == [f"Completed tools:\n- crawl (id: {id}, size: {format_short_size(len(BIG))})"]
        assert (await two.invoke("get_tool_output", asked)).text.startswith("line of text")
        assert (await two.invoke("wait_for_tool_output")).text == slow_tools.NONE_RUNNING


async def test_a_tool_that_fails_elsewhere_is_reported_with_its_failure(place: Place):
    async with shared(place) as one, shared(place) as two:

        async def crawl() -> str:
            raise OSError("no route to host")

        id = await one.start("crawl", {}, crawl)
        answer = (await two.invoke("wait_for_tool_output")).text
        assert "failed: OSError: no route to host" in answer
        assert (await two.invoke("get_tool_output", {"id": id, "mode": "raw"})).text == "Tool failed: OSError: no route to host"


async def test_running_jobs_and_the_notice_are_the_same_in_every_worker(place: Place):
    async with shared(place) as one, shared(place) as two, shared(place, "others") as stranger:
        began, finish = anyio.Event(), anyio.Event()

        async def crawl() -> str:
            began.set()
            await finish.wait()
            return BIG

        id = await one.start("crawl", {}, crawl)
        await began.wait()
        assert [job.id for job in one.running()] == [job.id for job in two.running()] == [id]
        assert id in two.notice()
        assert "### Running (1)" in two.notice()
        assert (stranger.running(), stranger.notice()) == ([], "")
        finish.set()
        await one.invoke("wait_for_tool_output")
        assert one.running() == two.running() == []
        assert "### Ready (1)" in two.notice()


async def test_a_job_that_one_worker_runs_is_aborted_by_another(place: Place):
    async with shared(place) as one, shared(place) as two, shared(place, "others") as stranger:
        ended = anyio.Event()

        async def crawl() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        id = await one.start("crawl", {}, crawl)
        await stranger.abort()
        await two.abort()
        with anyio.fail_after(60):
            await ended.wait()
        asked = {"id": id, "mode": "raw"}
        assert (await two.invoke("get_tool_output", asked)).text == replies.tool_failure(slow_tools.INTERRUPTED)
        assert (await one.invoke("get_tool_output", asked)).text == replies.tool_failure("cancelled")
        assert (await one.call("mark", {}, lambda: "one still works")).text == "one still works"
        assert two.running() == one.running() == []


@pytest.mark.promise("nothing-lost")
@pytest.mark.slow
async def test_a_worker_that_is_killed_loses_nothing_it_kept_and_its_tools_are_reported(place: Place):
    with subprocess.Popen(place.command(), stdout=subprocess.PIPE, text=True) as worker:  # noqa: ASYNC220
        assert worker.stdout is not None
        handle, job = worker.stdout.readline().split()
        async with shared(place) as other:
            assert other.open(handle).text() == "from another process"
            asked = {"id": job, "mode": "raw"}
            assert (await other.invoke("get_tool_output", asked)).text == retrieval.not_ready()
            worker.send_signal(signal.SIGKILL)
            worker.wait()
            answers: list[str] = []

            async def ask() -> None:
                while not answers or answers[-1] == retrieval.not_ready():
                    answers.append((await other.invoke("get_tool_output", asked)).text)

            with anyio.fail_after(60):
                await ask()
            assert answers[-1] == replies.tool_failure(slow_tools.INTERRUPTED)
            assert other.open(handle).text() == "from another process"


@pytest.mark.slow
@pytest.mark.parametrize("skew", [60, -60])
async def test_a_worker_whose_clock_is_a_minute_off_shares_its_outputs_and_jobs_as_ever(place: Place, skew: int):
    with subprocess.Popen(place.command(skew=skew), stdout=subprocess.PIPE, text=True) as worker:  # noqa: ASYNC220
        assert worker.stdout is not None
        handle, job = worker.stdout.readline().split()
        async with shared(place) as other:
            assert other.open(handle).text() == "from another process"
            assert [each.id for each in other.running()] == [job]
            assert job in other.notice()
            await other.abort()
            await until(lambda: not other.running())
            answer = await other.invoke("get_tool_output", {"id": job, "mode": "raw"})
            assert answer.text.startswith("Tool failed")
            assert other.open(handle).text() == "from another process"
        worker.kill()


async def test_what_was_kept_before_the_session_was_shared_is_still_there(place: Place):
    async with Session(name="team", store=place.open()) as alone:
        kept = await alone.keep(BIG, "dump")
    async with shared(place) as one:
        assert one.open(kept.handle).text() == BIG


async def test_a_shared_session_needs_a_name(place: Place):
    with pytest.raises(BadRequest, match="needs a name"):
        Session(shared=True, store=place.open())
    with pytest.raises(BadRequest, match="contains a slash"):
        Session(name="a/c", family="b", shared=True, store=place.open())
