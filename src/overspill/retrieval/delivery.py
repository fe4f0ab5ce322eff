"""Deliver the output of a background job as its call would have: whole if it may pass, else what stands for it."""

from __future__ import annotations

from contextlib import suppress

import anyio.to_thread
from msgspec.structs import replace

from overspill.calls.job import Job
from overspill.errors import OverspillError
from overspill.gate import replies
from overspill.gate.decide import Keep, decide
from overspill.gate.gate import Gate
from overspill.gate.recorder import ReplyRecorder
from overspill.gate.replies import OutputText, ReplyDraft
from overspill.retrieval.handlers import RetrievalTools
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.outputs import StoredOutputs
from overspill.settings import Settings
from overspill.types import JobInfo, Kept, Reply


class Delivery:
    def __init__(self, outputs: StoredOutputs, stand_ins: StandIns, retrieval: RetrievalTools, recorder: ReplyRecorder) -> None:
        self._recorder = recorder
        self._outputs = outputs
        self._stand_ins = stand_ins
        self._retrieval = retrieval

    async def deliver(self, info: JobInfo) -> Reply | None:
        """None while the job is still running."""
        job = self._outputs.find_job(info.id)
        if job is None or not job.done:
            return None
        kept = job.kept
        if kept is not None and not job.error and self._stand_ins.are_due(kept):
            with suppress(OverspillError):  # it may be gone already; the retrieval below says so
                reply = await self._stand_ins.word(job)
                self._recorder.show("output", reply.text, reply.content, job.id)
                return replace(reply, job=job.info)
        reply = await self._retrieval.invoke("get_tool_output", {"id": info.id, "mode": "raw"})
        return replace(reply, job=job.info)


class StandIns:
    """What stands for a job's output, which is stored."""

    def __init__(self, gate: Gate, outputs: StoredOutputs) -> None:
        self._gate = gate
        self._outputs = outputs

    def are_due(self, kept: Kept) -> bool:
        return isinstance(decide(kept.size, self._settings_of(kept)), Keep)

    async def word(self, job: Job) -> Reply:
        kept = job.kept
        assert kept is not None
        stored = await anyio.to_thread.run_sync(self._outputs.recent, kept.handle)
        drafts = await anyio.to_thread.run_sync(self._draft, stored)
        intent = None if kept.missing else self._gate.intents.noted(kept.id)
        drafts = await self._gate.intents.extend(drafts, kept, intent, self._settings_of(kept), self._gate.room)
        answer, fits = self._gate.reserve(drafts)
        job.is_announced = True
        content = [{"type": "text", "text": answer.text}, *job.blocks]
        model, is_error = self._gate.settings.model, bool(job.error)
        return Reply(text=answer.text, content=content, fits=fits, kept=kept, is_error=is_error, model=model)

    def _draft(self, stored: StoredOutput) -> list[ReplyDraft]:
        kept = stored.kept
        settings, source = self._settings_of(kept), OutputText(stored.reader, kept.size)
        if kept.missing:
            return replies.draft_incomplete(kept, kept.size.bytes, kept.missing, source, settings)
        return replies.FORMS[settings.answer_form](kept, source, settings)

    def _settings_of(self, kept: Kept) -> Settings:
        return self._gate.settings.for_tool(kept.tool, kept.server)
