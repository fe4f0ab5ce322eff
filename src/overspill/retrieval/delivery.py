"""What stands for the output of a background job, as its call would have answered it."""

from __future__ import annotations

import anyio.to_thread
from msgspec import Struct

from overspill.calls.job import Job
from overspill.gate import replies
from overspill.gate.decide import Keep, decide
from overspill.gate.gate import Gate
from overspill.gate.replies import OutputText, ReplyDraft
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.outputs import StoredOutputs
from overspill.settings import Settings
from overspill.types import Kept, Reply


class StandIns(Struct, frozen=True):
    gate: Gate
    outputs: StoredOutputs

    def are_due(self, kept: Kept) -> bool:
        return isinstance(decide(kept.size, self._settings_of(kept)), Keep)

    async def word(self, job: Job) -> Reply:
        kept = job.kept
        assert kept is not None
        stored = await anyio.to_thread.run_sync(self.outputs.recent, kept.handle)
        drafts = await anyio.to_thread.run_sync(self._draft, stored)
        intent = None if kept.missing else self.gate.intents.noted(kept.id)
        drafts = await self.gate.intents.extend(drafts, kept, intent, self._settings_of(kept), self.gate.room)
        answer, fits = self.gate.reserve(drafts)
        job.is_announced = True
        content = [{"type": "text", "text": answer.text}, *job.blocks]
        model, is_error = self.gate.settings.model, bool(job.error)
        return Reply(text=answer.text, content=content, fits=fits, kept=kept, is_error=is_error, model=model)

    def _draft(self, stored: StoredOutput) -> list[ReplyDraft]:
        kept = stored.kept
        settings, source = self._settings_of(kept), OutputText(stored.reader, kept.size)
        if kept.missing:
            return replies.draft_incomplete(kept, kept.size.bytes, kept.missing, source, settings)
        return replies.FORMS[settings.answer_form](kept, source, settings)

    def _settings_of(self, kept: Kept) -> Settings:
        return self.gate.settings.for_tool(kept.tool, kept.server)
