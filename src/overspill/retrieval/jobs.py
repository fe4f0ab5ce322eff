"""The background jobs of a session and of other workers that share it, and what a model reads about them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Iterable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import TypeAlias

import anyio
import anyio.to_thread

from overspill.calls.job import Job
from overspill.calls.scheduler import JobScheduler
from overspill.errors import StoreError
from overspill.gate.decide import Keep, decide
from overspill.gate.gate import Gate
from overspill.retrieval.group import SessionGroup
from overspill.settings import Settings
from overspill.wording import slow_tools
from overspill.wording.slow_tools import JobStatus

_FIRST_LOOK_SECONDS = 0.25
_MAX_SECONDS_BETWEEN_LOOKS = 2.0
_MIN_SECONDS_TO_ABORT = 0.5
_MAX_SECONDS_TO_ABORT = 10.0
_MAX_SECONDS_FOR_A_TURN = 1.0
"""The most that a notice waits for the store."""

Cancel: TypeAlias = Callable[[str], Awaitable[bool]]


class JobsElsewhere:
    """Background jobs that other workers run for the same shared session. Their journals say how they end."""

    def __init__(self, group: SessionGroup) -> None:
        self._group = group
        self._announced: set[str] = set()
        self._last: list[Job] = []
        """The last known jobs, for when the store does not answer."""
        self._looking: Event | None = None
        self._mutex = Lock()

    async def look(self, here: Container[str] = ()) -> tuple[list[Job], list[Job]]:
        """The jobs that have ended but were neither announced here nor read anywhere, and those that are still running.

        Leaves out jobs that are `here`, because the session knows about those itself.
        """
        jobs = [job for job in await anyio.to_thread.run_sync(self._list_jobs) if job.id not in here]
        ended = [job for job in jobs if job.done and job.id not in self._announced]
        return ended, [job for job in jobs if not job.done]

    def list_jobs(self, here: Container[str]) -> list[Job]:
        """The jobs that are still running, and those that have ended but have not been read. If the store takes longer than a
        turn may wait, this returns what it last said. Blocks for a moment, so call it in a thread."""
        with self._mutex:
            if (looking := self._looking) is None:
                looking = self._looking = Event()
                Thread(target=self._list_jobs, args=(looking,), name="overspill-jobs-elsewhere", daemon=True).start()
        looking.wait(_MAX_SECONDS_FOR_A_TURN)
        return [job for job in self._last if job.id not in here and job.id not in self._announced]

    async def cancel_if_aborted(self, job: Job) -> None:
        """Other machines cannot notify this one, so it checks whether one of them has aborted the job, less and less often."""
        while not job.done:
            await anyio.sleep(min(_MAX_SECONDS_TO_ABORT, max(_MIN_SECONDS_TO_ABORT, job.seconds / 10)))
            with suppress(StoreError):
                if not job.done and not job.is_elsewhere and await anyio.to_thread.run_sync(self._group.read_job, job.id):
                    job.cancel()

    async def abort(self, here: Container[str], cancel_queued: Cancel | None) -> None:
        """Cancel the jobs that other workers run. `cancel_queued` returns whether a task engine has the job."""
        for job in (await self.look(here))[1]:
            if cancel_queued is None or not await cancel_queued(job.id):
                with suppress(StoreError):  # it has ended, or a worker of a task engine runs it
                    await anyio.to_thread.run_sync(self._group.mark_aborted, job)

    def _list_jobs(self, looking: Event | None = None) -> list[Job]:
        """The jobs that the store lists or, if it fails, those it listed last. Sets `looking` at the end."""
        try:
            with suppress(StoreError):
                self._last = self._group.list_unread_jobs()
        finally:
            if looking is not None:
                with self._mutex:
                    self._looking = None
                looking.set()
        return self._last

    async def wait_for_ended(self, jobs: JobScheduler) -> list[Job]:
        """Wait for jobs to end. Empty if none is running. Polls ever less often, because other machines cannot notify it."""
        pause = _FIRST_LOOK_SECONDS
        while True:
            ended, running = await self.look(jobs.background)
            self._announced.update(job.id for job in ended)
            if ended or not (running or jobs.pending()):
                return ended
            await anyio.sleep(pause)
            pause = min(pause * 1.5, _MAX_SECONDS_BETWEEN_LOOKS)


async def wait_for_news(jobs: JobScheduler, elsewhere: JobsElsewhere | None, gate: Gate) -> str:
    """The jobs that have completed, or those still running."""
    done, pending = await wait_for_jobs(jobs, elsewhere, gate.settings.wait_max_secs)
    statuses = describe_jobs(done or pending, gate)
    if done:
        return slow_tools.completed_jobs(statuses)
    return slow_tools.still_running(statuses) if pending else slow_tools.NONE_RUNNING


def list_statuses(jobs: JobScheduler, gate: Gate) -> list[JobStatus]:
    """Background jobs, and stored outputs that the model knows only by id."""
    statuses = describe_jobs(jobs.background.values(), gate)
    if gate.settings.answer_form == "ready":
        others = (kept for kept in gate.kept.latest() if kept.id not in jobs.background and kept.reason != "requested")
        retrieved = gate.ledger.counters.retrieved
        statuses += [
            JobStatus(kept.artifact_id, kept.tool, "ready", 0.0, kept.size, retrieved.get(kept.id, 0), exceeds=True)
            for kept in others
        ]
    return statuses


async def wait_for_jobs(jobs: JobScheduler, elsewhere: JobsElsewhere | None, seconds: float) -> tuple[list[Job], list[Job]]:
    """The ended jobs that were not announced yet, and those still running. If none has ended, wait for the first."""
    if elsewhere is None:
        return await jobs.wait(seconds), jobs.pending()
    done: list[Job] = []
    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as group:

            async def wait_here() -> None:
                if found := await jobs.wait(seconds):
                    done.extend(found)
                    group.cancel_scope.cancel()

            group.start_soon(wait_here)
            done.extend(await elsewhere.wait_for_ended(jobs))
            group.cancel_scope.cancel()
    return done, [*jobs.pending(), *(await elsewhere.look(jobs.background))[1]] if not done else []


def describe_jobs(jobs: Iterable[Job], gate: Gate) -> list[JobStatus]:
    retrieved = gate.ledger.counters.retrieved
    return [describe_job(job, gate.settings, retrieved.get(job.id, 0)) for job in jobs]


def describe_job(job: Job, settings: Settings, retrievals: int) -> JobStatus:
    """`settings` are the session's, `retrievals` how often its output was read."""
    kept = job.kept
    exceeds = kept is not None and isinstance(decide(kept.size, settings.for_tool(kept.tool, kept.server)), Keep)
    size = kept.size if kept else None
    return JobStatus(job.artifact_id, job.tool, job.state, job.seconds, size, retrievals, exceeds, job.error, job.progress)
