"""What a model is told of background jobs and of outputs that are ready."""

from __future__ import annotations

from overspill.calls.job import Job
from overspill.gate.decide import Keep, decide
from overspill.settings import Settings
from overspill.types import Kept
from overspill.wording.slow_tools import JobStatus


def describe_job(job: Job, settings: Settings, retrievals: int) -> JobStatus:
    """`settings` are the session's, `retrievals` how often its output was read."""
    kept = job.kept
    exceeds = kept is not None and isinstance(decide(kept.size, settings.for_tool(kept.tool, kept.server)), Keep)
    size = kept.size if kept else None
    return JobStatus(job.artifact_id, job.tool, job.state, job.seconds, size, retrievals, exceeds, job.error, job.progress)


def describe_ready(kept: Kept, retrievals: int) -> JobStatus:
    return JobStatus(kept.artifact_id, kept.tool, "ready", 0.0, kept.size, retrievals, exceeds=True)
