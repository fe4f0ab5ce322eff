"""The part of a stored output that a reply shows: passages for its caller, or what a background call would have answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import anyio.to_thread
from msgspec import Struct

from overspill import handles
from overspill.calls.invoke import Tool
from overspill.calls.job import Job
from overspill.calls.service import CallService
from overspill.errors import OverspillError
from overspill.extraction import BUILTIN
from overspill.gate import replies
from overspill.gate.decide import Keep, Pass, decide
from overspill.gate.gate import Gate
from overspill.gate.passages import Passages
from overspill.gate.recorder import ReplyRecorder
from overspill.gate.replies import OutputText, ReplyDraft
from overspill.lexical.index import Work
from overspill.reading import Bound
from overspill.record.events import OutputExtracted, now_ms
from overspill.retrieval.extracted import format_abstract
from overspill.retrieval.extractor import ExtractionRequest, Extractor, read_document
from overspill.retrieval.group import SessionGroup
from overspill.retrieval.output import quote_spans
from overspill.retrieval.outputs import StoredOutputs
from overspill.settings import Settings
from overspill.types import Block, Kept, Reply


class StandIns(Struct, frozen=True):
    gate: Gate
    outputs: StoredOutputs

    def are_due(self, kept: Kept) -> bool:
        return isinstance(decide(kept.size, self._settings_of(kept)), Keep)

    async def draft(self, kept: Kept) -> Sequence[ReplyDraft]:
        stored = await anyio.to_thread.run_sync(self.outputs.recent, kept.handle)
        settings = self._settings_of(kept)
        source = await anyio.to_thread.run_sync(lambda: OutputText(stored.reader, stored.shown.size))
        if kept.missing:
            draft = partial(replies.draft_incomplete, kept, kept.size.bytes, kept.missing, source, settings)
        else:
            draft = partial(replies.FORMS[settings.answer_form], kept, source, settings)
        drafts = await anyio.to_thread.run_sync(draft)
        intent = None if kept.missing else self.gate.intents.noted(kept.id)
        return await self.gate.intents.extend(drafts, kept, intent, settings, self.gate.room)

    async def word(self, job: Job) -> Reply:
        kept = job.kept
        assert kept is not None
        answer, fits = self.gate.reserve(await self.draft(kept))
        job.is_announced = True
        content = [{"type": "text", "text": answer.text}, *job.blocks]
        model, is_error = self.gate.settings.model, bool(job.error)
        return Reply(text=answer.text, content=content, fits=fits, kept=kept, is_error=is_error, model=model)

    def find_job(self, spelling: str) -> Job:
        """The job with this id, and its output. Blocks. Raises HandleError or StoreError."""
        job = self.outputs.find_job(spelling)
        if job is None:  # only its output is left
            kept = self.outputs.find(spelling)
            job = Job.restore(kept.id, kept.tool, kept.server, "ready", 0.0, "")
            job.kept = kept
        elif job.done and job.kept is None:
            with suppress(OverspillError):
                job.kept = self.outputs.find(spelling)
        return job

    async def answer(self, job: Job) -> Reply:
        """The reply that the call of an ended job would have returned: the output if it may pass, otherwise what replaces it."""
        kept, model, is_error = job.kept, self.gate.settings.model, bool(job.error)
        job.is_announced = True
        if kept is not None and not isinstance(decide(kept.size, self._settings_of(kept)), Pass):
            return await self.word(job)
        text = ""
        if kept is not None:
            stored = await anyio.to_thread.run_sync(self.outputs.recent, kept.handle)
            text = await anyio.to_thread.run_sync(stored.text)
        content: list[Block] = [{"type": "text", "text": text}] if text else []
        return Reply(text=text, content=[*content, *job.blocks], is_error=is_error, model=model)

    def _settings_of(self, kept: Kept) -> Settings:
        return self.gate.settings.for_tool(kept.tool, kept.server)


class SessionJobs(Struct, frozen=True):
    """The background jobs of a session, for hosts that show them in their own way."""

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


_TOOL = "intent"
"""What the record names instead of a retrieval tool."""


class PassageSearch(Struct, frozen=True):
    """Searches for passages. Shares the engine's indexes with the retrieval tools: each uses what the other has built."""

    outputs: StoredOutputs
    extractor: Extractor

    def find(self, kept: Kept, question: str, max_tokens: int, work: Work | None) -> Passages:
        text = self.outputs.recent(kept.handle).decoded()
        document = read_document(kept, "{}", text)
        found = self.extractor.select(document, question, max_tokens, work=work)
        passages, closing = "", ""
        if found.excerpts:
            passages, _, closing = found.text.rpartition("\n")
        quotes = quote_spans(((each.start_byte, each.end_byte) for each in found.excerpts), text)
        formats = text.decoding.formats if text.decoding else ()
        searched, left = found.searched_bytes, max(0, text.size.bytes - found.searched_bytes)
        return Passages(passages, closing, found.confidence, found.matched, found.kind, searched, left, quotes, formats)

    async def ask_model(self, kept: Kept, question: str, max_tokens: int, max_bytes: int) -> str:
        request = ExtractionRequest(tool=_TOOL, query=question, max_tokens=max_tokens, max_bytes=max_bytes)
        if not self.extractor.model_names(request):
            return ""
        stored = await anyio.to_thread.run_sync(self.outputs.recent, kept.handle)
        found = await self.extractor.extract(stored, "{}", request)
        if found.model == BUILTIN:
            return ""
        refit = partial(self.extractor.refit, stored, request)
        fit = partial(format_abstract, kept, found, Bound(max_bytes), stored.shown_id, refit=refit)
        return (await anyio.to_thread.run_sync(fit)).text

    def record(self, kept: Kept, found: Passages, milliseconds: int) -> None:
        event = OutputExtracted(
            now_ms(),
            handles.new(),
            kept.id,
            _TOOL,
            "auto",
            strategy="builtin",
            model=BUILTIN,
            confidence=round(found.confidence, 3),
            chunks_searched=1,
            chunks_total=1,
            latency=milliseconds,
            quotes=found.quotes,
            decoded=found.decoded,
        )
        self.extractor.record(event, kept)
