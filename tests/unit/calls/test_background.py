"""The jobs in the background: the latest are in memory, and the others are restored when somebody asks for them."""

import pytest

from overspill.calls.background import MAX_FINISHED_JOBS, BackgroundJobs
from overspill.calls.job import Job
from overspill.types import Block

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


def test_a_job_whose_images_are_in_memory_stays_in_memory():
    job = finished(blocks=[IMAGE])
    assert filled([job], [])[job.id] is job


def test_a_job_that_never_existed_is_unknown():
    with pytest.raises(KeyError):
        filled([], [])["nothing"]
