"""The jobs in the background: the latest are in memory, and the others are restored when somebody asks for them."""

import pytest

from overspill import handles
from overspill.calls.background import MAX_FINISHED_JOBS, BackgroundJobs, find_last_change, restore_job
from overspill.calls.job import Job
from overspill.record.events import JobChanged, ToolCalled
from overspill.types import Block, JobState
from overspill.wording.slow_tools import INTERRUPTED

IMAGE = {"type": "image", "data": "aGVsbG8="}


def finished(*, announced: bool = False, blocks: list[Block] | None = None) -> Job:
    job = Job("tool", 1.0, None)
    job.end()
    job.is_announced, job.blocks = announced, blocks or []
    return job


def filled(first: list[Job], recalled: list[str]) -> BackgroundJobs:
    def recall(id: str) -> Job:
        recalled.append(id)
        return Job.restore(id, "tool", "", "failed", 1.5, "why")

    jobs = BackgroundJobs(recall)
    for job in (*first, *(finished() for _ in range(MAX_FINISHED_JOBS))):
        jobs.add(job)
        jobs.finish(job)
    return jobs


def test_a_job_that_left_memory_is_restored_only_when_it_is_looked_up():
    recalled: list[str] = []
    job = finished()
    jobs = filled([job], recalled)
    assert job.id in jobs
    assert job.id not in list(jobs)
    assert len(jobs) == MAX_FINISHED_JOBS
    assert recalled == []
    restored = jobs[job.id]
    assert (restored.id, restored.state, restored.error, restored.seconds, restored.done) == (job.id, "failed", "why", 1.5, True)
    assert recalled == [job.id]


def test_an_announced_job_leaves_memory_before_an_older_one_that_is_not():
    waiting, announced = finished(), finished(announced=True)
    jobs = BackgroundJobs()
    for job in (waiting, announced, *(finished() for _ in range(MAX_FINISHED_JOBS - 2))):
        jobs.add(job)
        assert jobs.finish(job) is None
    for expected in (announced, waiting):
        jobs.add(job := finished())
        assert jobs.finish(job) is expected


@pytest.mark.parametrize("block", [IMAGE, {"data": b"bytes"}, {"sizes": (1, 2)}, {"text": "\ud800"}, {"number": float("inf")}])
def test_a_job_that_left_memory_has_its_blocks_as_they_were(block: Block):
    job = finished(blocks=[block])
    jobs = filled([job], [])
    assert job.id not in list(jobs)
    assert jobs[job.id].blocks == [block]


def test_a_job_that_never_existed_is_unknown():
    with pytest.raises(KeyError):
        filled([], [])["nothing"]


@pytest.mark.parametrize(
    ("state", "error", "restored"),
    [
        ("ready", "", ("ready", "")),
        ("failed", "no route", ("failed", "no route")),
        ("failed", "cancelled", ("failed", INTERRUPTED)),
        ("running", "", ("failed", INTERRUPTED)),
        ("queued", "", ("failed", INTERRUPTED)),
    ],
)
def test_a_job_that_did_not_end_was_interrupted(state: JobState, error: str, restored: tuple[str, str]):
    id = handles.new()
    happened = [JobChanged(1, id, "tool", "running"), JobChanged(2, handles.new(), "tool", "ready"), ToolCalled(3, "tool")]
    change = find_last_change([*happened, JobChanged(4, id, "tool", state, 1.5, error)], id)
    assert change
    job = restore_job(change)
    assert (job.id, job.state, job.error, job.seconds, job.done) == (id, *restored, 1.5, True)
    assert find_last_change(happened, handles.new()) is None
