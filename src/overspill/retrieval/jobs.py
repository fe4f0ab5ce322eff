"""What a model reads about background jobs."""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from overspill.calls.job import Job
from overspill.calls.scheduler import JobScheduler
from overspill.gate.decide import Keep, decide
from overspill.gate.gate import Gate
from overspill.retrieval.elsewhere import JobsElsewhere
from overspill.settings import Settings
from overspill.wording import slow_tools
from overspill.wording.slow_tools import JobStatus


async def wait_for_news(
    jobs: JobScheduler, elsewhere: JobsElsewhere | None, settings: Settings, retrieved: Mapping[str, int]
) -> str:
    """The jobs that have completed, or those still running. `retrieved`: how often the output of each was read."""
    done, pending = await wait_for_jobs(jobs, elsewhere, settings.wait_max_secs)
    statuses = [describe_job(job, settings, retrieved.get(job.id, 0)) for job in done or pending]
    if done:
        return slow_tools.completed_jobs(statuses)
    return slow_tools.still_running(statuses) if pending else slow_tools.NONE_RUNNING


def list_statuses(jobs: JobScheduler, gate: Gate, retrieved: Mapping[str, int]) -> list[JobStatus]:
    """Background jobs, and stored outputs that the model knows only by id."""
    statuses = [describe_job(job, gate.settings, retrieved.get(job.id, 0)) for job in jobs.background.values()]
    if gate.settings.answer_form == "ready":
        others = (kept for kept in gate.kept.latest() if kept.id not in jobs.background and kept.reason != "requested")
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


def describe_job(job: Job, settings: Settings, retrievals: int) -> JobStatus:
    """`settings` are the session's, `retrievals` how often its output was read."""
    kept = job.kept
    exceeds = kept is not None and isinstance(decide(kept.size, settings.for_tool(kept.tool, kept.server)), Keep)
    size = kept.size if kept else None
    return JobStatus(job.artifact_id, job.tool, job.state, job.seconds, size, retrievals, exceeds, job.error, job.progress)
