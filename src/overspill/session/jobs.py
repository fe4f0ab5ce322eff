"""The background jobs of a session, for hosts that show them in their own way."""

from __future__ import annotations

from collections.abc import Callable

import anyio.to_thread
from msgspec import Struct

from overspill.calls.invoke import Tool
from overspill.calls.job import Job
from overspill.calls.service import CallService
from overspill.gate.recorder import ReplyRecorder
from overspill.retrieval.delivery import StandIns
from overspill.retrieval.group import SessionGroup
from overspill.types import Reply


class SessionJobs(Struct, frozen=True):
    calls: CallService
    stand_ins: StandIns
    recorder: ReplyRecorder
    family: SessionGroup | None

    async def find(self, id: str) -> Job:
        """The job with this id, even of an earlier session of the family. Raises HandleError, or StoreError if it cannot tell."""
        return await anyio.to_thread.run_sync(self.stand_ins.find_job, id)

    async def deliver(self, job: Job) -> Reply:
        """The reply that the call of an ended job would have returned: the output if it may pass, otherwise its card."""
        reply = await self.stand_ins.answer(job)
        self.recorder.show("output", reply.text, reply.content, job.id)
        await self.calls.settle()
        return reply

    async def call_off(self, job: Job) -> None:
        """Cancel a job, even if another worker runs it. Does nothing if the job has ended."""
        if hasattr(job, "scope"):
            job.call_off()
        elif not job.done and self.family is not None:
            await anyio.to_thread.run_sync(self.family.mark_aborted, job)

    async def resume_tasks(self, find_tool: Callable[[str, str], Tool | None]) -> None:
        """Follow the tasks that earlier sessions left running on servers. `find_tool` takes a server's name and a task's id."""
        for change in await anyio.to_thread.run_sync(self.family.list_left_tasks) if self.family else ():
            if (tool := find_tool(change.server, change.task)) is not None:
                self.calls.resume(change, tool)
        await self.calls.settle()
