"""The jobs of a session that run in the background, or ran there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from overspill.calls.job import Job
from overspill.record.events import Entry, JobChanged
from overspill.record.ledger import Ledger
from overspill.types import ENDED, Block
from overspill.wording.slow_tools import INTERRUPTED

_MAX_QUEUED_SECONDS = 86_400  # after this, a job that no worker took counts as lost
MAX_FINISHED_JOBS = 1_000
"""Finished jobs in memory. Of older ones, memory holds only ids and blocks; the journal says how they ended."""


class BackgroundJobs(Mapping[str, Job]):
    """Jobs by id. Iterates over the jobs in memory; `recall` restores a finished job that is no longer in memory."""

    def __init__(self, recall: Callable[[str], Job | None] = lambda id: None) -> None:
        self._recall = recall
        self._jobs: dict[str, Job] = {}
        self._finished: dict[str, Job] = {}
        self._forgotten: dict[str, bytes | Sequence[Block]] = {}
        """Their blocks, which are nowhere else."""

    def add(self, job: Job) -> None:
        self._jobs[job.id] = job

    def note_earlier(self, change: JobChanged) -> None:
        """Note a job's last change before the session was opened again. A ready job has its output and needs nothing more."""
        if change.state == "ready":
            self._forgotten.pop(change.id, None)
        else:
            self._forgotten[change.id] = ()

    def note_read(self, id: str) -> None:
        """Note that a model has read a job's output. It then needs no notice that the job has finished."""
        if (job := self._jobs.get(id)) is not None and job.done:
            job.is_announced = True

    def finish(self, job: Job) -> Job | None:
        """Note that a job has finished. Returns the job dropped to make room: the oldest announced one, or else the oldest."""
        self._finished[job.id] = job
        if len(self._finished) <= MAX_FINISHED_JOBS:
            return None
        jobs = self._finished.values()
        oldest = next((job for job in jobs if job.is_announced), None) or next(iter(jobs))
        self._forgotten[oldest.id] = _pack(oldest.blocks)  # before it is deleted, because another thread may be looking for it
        del self._finished[oldest.id], self._jobs[oldest.id]
        return oldest

    def __getitem__(self, id: str) -> Job:
        if (job := self._jobs.get(id)) is not None:
            return job
        if id in self._forgotten and (job := self._recall(id)) is not None:
            packed = self._forgotten[id]
            job.blocks = msgspec.json.decode(packed) if isinstance(packed, bytes) else packed
            return job
        raise KeyError(id)

    def __contains__(self, id: object) -> bool:
        return id in self._jobs or id in self._forgotten

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)


def _pack(blocks: Sequence[Block]) -> bytes | Sequence[Block]:
    """Pack them as JSON, which takes much less memory, unless that would change them."""
    with suppress(TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        if blocks and msgspec.json.decode(packed := msgspec.json.encode(blocks)) == blocks:
            return packed
    return blocks or ()


def find_last_change(happened: Iterable[Entry], id: str) -> JobChanged | None:
    changes = [event for event in happened if isinstance(event, JobChanged) and event.id == id]
    return changes[-1] if changes else None


def recall_job(ledger: Ledger, id: str) -> Job | None:
    change = find_last_change(ledger.events_about(id), id)
    if change is None or change.is_elsewhere:  # what a worker does is written down elsewhere
        return None
    return restore_job(change)


def was_interrupted(change: JobChanged) -> bool:
    return change.state not in ENDED or (change.state == "failed" and change.error == "cancelled")


def restore_job(change: JobChanged, *, is_live: bool = False) -> Job:
    """Restore a job that is not in memory from its last entry in the journal.

    A job that had not ended, or that its session's end cancelled, was interrupted, unless its session `is_live` elsewhere, or it
    waits in the queue of a task engine.
    """
    is_unfinished = change.state not in ENDED
    is_recent = time.time() - change.t / 1000 < _MAX_QUEUED_SECONDS
    if is_unfinished and (is_live or (is_recent and (change.is_elsewhere or change.is_repeatable))):
        state = change.state if is_live and not change.is_elsewhere else "queued"
        return Job.watch(change.id, change.tool, change.server, state, change.t)
    state, error = ("failed", INTERRUPTED) if was_interrupted(change) else (change.state, change.error)
    return Job.restore(change.id, change.tool, change.server, state, change.seconds, error)
