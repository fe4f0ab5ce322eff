"""Answers a model's calls of the four retrieval tools, within the bound and the room that is left in the context."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, cast

import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from overspill.calls.invoke import check_arguments
from overspill.calls.job import Job
from overspill.calls.scheduler import JobScheduler
from overspill.errors import BadRequest, HandleError, OverspillError
from overspill.extraction import ExtractionFailed, Mode
from overspill.gate.collect import CollectedResult, text_block
from overspill.gate.decide import Keep, Pass, Shorten, decide
from overspill.gate.gate import Gate
from overspill.gate.recorder import ReplyRecorder
from overspill.gate.replies import OutputText, ReplyDraft
from overspill.reading import Bound
from overspill.record.events import OutputRetrieved, RecordedReply, now_ms
from overspill.retrieval import definitions, exact, extracted
from overspill.retrieval.definitions import TOOLS, GetArtifact, GetToolOutput, WaitForToolOutput, parse_arguments
from overspill.retrieval.delivery import StandIns
from overspill.retrieval.exact import output_id, read_image
from overspill.retrieval.extractor import ExtractionRequest, Extractor
from overspill.retrieval.jobs import JobsElsewhere, describe_jobs, list_statuses, wait_for_news
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.outputs import StoredOutputs
from overspill.retrieval.pages import Page, add_note, failure_page, fetch_page, make_page
from overspill.retrieval.tables import OutputTables
from overspill.text import encoding, tokens
from overspill.text.arguments import chars_in, encode_arguments
from overspill.text.humanize import escape_invisible
from overspill.types import Block, Extraction, JobInfo, Reply
from overspill.wording import names, replies, retrieval, slow_tools
from overspill.wording.slow_tools import JobStatus

EVERYTHING = Bound(1 << 40)
FRAME_TOKENS = 250  # reserved for our words around an extraction, in presets that follow a document
MIN_EXTRACTION_TOKENS = 64
MIN_ANSWER_BYTES = 64  # anything smaller has no room to say how to continue

_turn: ContextVar[tuple[object, str | None]] = ContextVar("overspill_turn", default=(None, None))
"""The retrieval tools of the session whose turn this is, and the turn's model. Every task of the turn inherits it."""


class RetrievalTools(Struct, eq=False):
    """Answers bypass the gate and never go to the background, but take room in the context like any other reply.

    `inherits`: whether this session may read outputs that earlier sessions of its family stored.
    """

    gate: Gate
    outputs: StoredOutputs
    jobs: JobScheduler
    recorder: ReplyRecorder
    extractor: Extractor
    stand_ins: StandIns
    tables: OutputTables
    elsewhere: JobsElsewhere | None
    inherits: bool
    _latest_model: str | None = None
    _were_needed: bool = False
    _mentioned: set[str] = field(default_factory=set[str])

    @contextmanager
    def in_turn(self, model: str | None) -> Generator[None]:
        """Calls made inside this context extract with this model, even if other turns run at the same time."""
        self._latest_model = model
        before = _turn.set((self, model))
        try:
            yield
        finally:
            _turn.reset(before)

    @property
    def are_needed(self) -> bool:
        """Whether there is, or ever was, anything to retrieve."""
        self._were_needed = self._were_needed or bool(self.gate.kept or self.jobs.background or self.inherits)
        return self._were_needed

    async def invoke(self, name: str, args: object, call: str = "") -> Reply:
        started = time.perf_counter()
        sent: object = args
        given: Mapping[str, Any] = cast("Mapping[str, Any]", sent) if isinstance(sent, Mapping) else {}
        mode = given.get("mode")
        try:
            check_arguments(name, args)
            page = await self._page(name, given)
        except OverspillError as error:
            spelling, expired = str(given.get("id") or given.get("handle") or ""), self.gate.settings.wording.expired
            page = failure_page(error, retrieval.retrieval_failure(name, spelling, error, expired))
        answer, fits = self.gate.reserve(page.drafts or [ReplyDraft((page.text,))])
        self.jobs.background.note_read(page.id)
        content = [{"type": "text", "text": answer.text}, *page.blocks]
        mode = mode if isinstance(mode, str) and mode in definitions.MODES else ""
        latency, reply = round((time.perf_counter() - started) * 1000), self.recorder.add(content)
        question = self._record_question(name, given) if self.recorder.is_on else None
        shown = (page.id, page.start, page.end, len(page.text), latency, call, chars_in(given), reply, page.error_type)
        counted = tokens.count(answer.text, self.gate.settings.model).tokens
        status = "failed" if page.is_error else "ok"
        self.gate.ledger.record(OutputRetrieved(now_ms(), name, mode, status, *shown, counted, question))
        return Reply(text=answer.text, content=content, is_error=page.is_error, fits=fits, model=self.gate.settings.model)

    def _record_question(self, name: str, args: Mapping[str, Any]) -> RecordedReply | None:
        written = encoding.decode(encode_arguments(args) or b"")
        return self.recorder.add([text_block(self.gate.redaction.redact(written, name, ""))])

    async def deliver(self, info: JobInfo) -> Reply | None:
        """The reply that a background job's call would have returned: the output, or else its card. None while it runs."""
        job = self.outputs.find_job(info.id)
        if job is None or not job.done:
            return None
        if job.kept is not None and not job.error and self.stand_ins.are_due(job.kept):
            with suppress(OverspillError):  # it may be gone already; the retrieval below says so
                reply = await self.stand_ins.word(job)
                self.recorder.show("output", reply.text, reply.content, job.id)
                return replace(reply, job=job.info)
        return replace(await self.invoke("get_tool_output", {"id": info.id, "mode": "raw"}), job=job.info)

    def statuses(self) -> list[JobStatus]:
        return list_statuses(self.jobs, self.gate)

    def news(self) -> str:
        """Completed jobs that the model does not know about yet. Mentions each one once."""
        done = [job for job in self.jobs.ended() if not job.is_announced and job.id not in self._mentioned]
        self._mentioned = {id for id in self._mentioned if id in self.jobs.background} | {job.id for job in done}
        return self.recorder.show("news", slow_tools.completed_jobs(describe_jobs(done, self.gate))) if done else ""

    async def _page(self, name: str, args: Mapping[str, Any]) -> Page:
        match name:
            case "wait_for_tool_output":
                parse_arguments(name, WaitForToolOutput, args)
                return await self._wait()
            case "get_artifact":
                asked = parse_arguments(name, GetArtifact, args)
                if not (spelling := asked.artifact_id or asked.id):
                    raise BadRequest("artifact_id is missing. Use the id in the [Artifact: …] line.")
                stored = await anyio.to_thread.run_sync(self.outputs.recent, spelling)
                return await self._fetch_page(stored, lambda bound: exact.read_artifact(stored, asked, bound))
            case "get_tool_output":
                return await self._tool_output(parse_arguments(name, GetToolOutput, args))
            case "tool_output":
                return await self._abstract(args)
            case _:
                raise BadRequest(replies.unknown_tool(name, list(map(names.tool_name, TOOLS))))

    async def _tool_output(self, asked: GetToolOutput) -> Page:
        if not asked.id:
            raise BadRequest("id is empty. Use the id that the tool result gave.")
        job = await anyio.to_thread.run_sync(self.outputs.find_job, output_id(asked.id))
        if asked.mode == "wait":
            return await self._wait_for(job, asked)
        if job is None:
            return await self._answer_stored(asked, ())
        if not job.done:
            return await self._answer_running(job, asked)
        job.is_announced = True
        blocks = job.blocks if asked.mode == "raw" else ()
        if job.error and (asked.mode in ("raw", "extract", "ask") or job.id not in self.gate.kept):
            return Page(replies.tool_failure(job.error), is_error=True, blocks=blocks)
        return await self._answer_stored(asked, blocks)

    async def _wait(self) -> Page:
        return Page(await wait_for_news(self.jobs, self.elsewhere, self.gate))

    async def _wait_for(self, job: Job | None, asked: GetToolOutput) -> Page:
        """The answer of the call, as soon as it ends. If other jobs complete first, reports those instead."""
        if job is not None and not job.done:
            listed = await self._wait()
            job = await anyio.to_thread.run_sync(self.outputs.find_job, output_id(asked.id))
            if job is not None and not job.done:
                return listed
        job = await anyio.to_thread.run_sync(self.stand_ins.find_job, output_id(asked.id))
        if job.kept is None or job.error or not self.stand_ins.are_due(job.kept):
            return await self._tool_output(replace(asked, mode="raw"))
        job.is_announced = True
        return Page("", job.id, blocks=job.blocks, drafts=await self.stand_ins.draft(job.kept))

    async def _answer_stored(self, asked: GetToolOutput, blocks: Sequence[Block]) -> Page:
        """Answer about a stored output. `blocks` go with the answer, even if the text itself is too large."""
        stored = await anyio.to_thread.run_sync(self.outputs.recent, output_id(asked.id))
        if page := await anyio.to_thread.run_sync(read_image, stored, asked, self.gate.settings.max_inline_blob):
            return replace(page, blocks=[*page.blocks, *blocks])
        if asked.mode == "sql":
            return await self._fit_page((await self.tables.reply(stored, asked.query, self._bound())).page)
        if asked.mode in ("ask", "extract"):
            if not asked.query:
                raise BadRequest(retrieval.query_required(asked.mode))
            if asked.mode == "ask":
                return await self._answer_question(stored, "get_tool_output", asked.query, "auto")
            found, refit = await self._extract(stored, "get_tool_output", asked.query, "snippets")
            return await self._fit_page(lambda bound: extracted.format_snippets(stored.kept, found, bound, refit))
        if asked.mode == "raw":
            return replace(await self._raw(stored, asked), blocks=blocks)
        page = await self._fetch_page(stored, lambda bound: exact.read_output(stored, asked, bound))
        return replace(page, blocks=blocks)

    async def _raw(self, stored: StoredOutput, asked: GetToolOutput) -> Page:
        """The output in mode `raw`: whole if the gate would pass it and there is room, shortened if the gate would shorten it."""
        kept, settings = stored.kept, self.gate.settings.for_tool(stored.kept.tool, stored.kept.server)
        source = OutputText(stored.reader, stored.shown.size)
        match decide(kept.size, settings):
            case Keep():
                shows_images = self.gate.settings.wording.shows_images
                images = (await anyio.to_thread.run_sync(source.describe_images, kept))[1] if shows_images else []
                mode = "extract" if self.gate.settings.wording.has_closed_sets else "ask"
                message = "\n".join((retrieval.too_large(kept.size.bytes, mode), *images))
                found = await self.gate.intents.answer(message, kept, settings, self.gate.room)
                return Page(f"{found}\n\n{message}" if found else message, is_error=not found)
            case Shorten():

                def shorten(bound: Bound) -> Page:
                    return make_page(stored, source.truncate_to_bytes(min(settings.size_cap, bound.bytes), settings).text)

                return await self._fetch_page(stored, shorten)
            case Pass():
                return await self._fetch_page(stored, lambda bound: exact.read_output(stored, asked, bound), EVERYTHING)

    async def _fetch_page(self, stored: StoredOutput, read: Callable[[Bound], Page], bound: Bound | None = None) -> Page:
        return await self._fit_page(lambda bound: fetch_page(stored, bound, read), bound)

    async def _abstract(self, args: Mapping[str, Any]) -> Page:
        handle, mode = str(args.get("handle") or "unknown"), args.get("mode")
        try:
            asked = definitions.parse_extraction(args, self.gate.settings)
            stored = await anyio.to_thread.run_sync(self.outputs.recent, asked.handle)
        except HandleError as error:
            unknown = retrieval.unknown_handle(handle, len(self.gate.kept), error)
            return Page(retrieval.abstract("unknown", handle, "auto", unknown))
        except BadRequest as error:
            tool = await anyio.to_thread.run_sync(self.outputs.tool_of, handle)
            strategy = mode if isinstance(mode, str) and mode in definitions.EXTRACT_MODES else "auto"
            return failure_page(error, retrieval.extraction_failure(tool, handle, strategy, escape_invisible(str(error))))
        return await self._answer_question(stored, "tool_output", asked.extract, asked.mode)

    async def _answer_question(self, stored: StoredOutput, tool: str, question: str, mode: Mode) -> Page:
        kept, words = stored.kept, self.gate.settings.wording
        shown = words.handle(kept)
        try:
            found, refit = await self._extract(stored, tool, question, mode)
        except OverspillError as error:
            strategy = (error.strategy if isinstance(error, ExtractionFailed) else None) or mode
            return failure_page(error, retrieval.extraction_failure(kept.tool, shown, strategy, str(error)), kept.id)
        return await self._fit_page(lambda bound: extracted.format_abstract(kept, found, bound, shown, words, refit))

    async def _extract(self, stored: StoredOutput, tool: str, query: str, mode: Mode) -> tuple[Extraction, extracted.Refit]:
        bound, room = self._bound(), self.gate.room
        max_tokens = bound.least_bytes // tokens.CHARS_PER_TOKEN
        max_tokens = max_tokens if room is None else min(max_tokens, room)
        max_tokens = max(MIN_EXTRACTION_TOKENS, max_tokens - FRAME_TOKENS * self.gate.settings.wording.has_closed_sets)
        owner, model = _turn.get()
        model = model if owner is self else self._latest_model  # outside all turns, use the model of the latest turn
        request = ExtractionRequest(
            tool=tool, query=query, mode=mode, turn_model=model, max_tokens=max_tokens, max_bytes=bound.bytes
        )
        found = await self.extractor.extract(stored, self.gate.arguments.get(stored.kept.id, "{}"), request)
        return found, partial(self.extractor.refit, stored, request)

    async def _answer_running(self, job: Job, asked: GetToolOutput) -> Page:
        """What a streaming tool has produced so far can already be read."""
        collected: CollectedResult | None = job.result
        if asked.mode not in exact.READS_RUNNING or collected is None or not collected.produced:
            is_documented = self.gate.settings.wording.has_closed_sets
            raise BadRequest(retrieval.not_ready("" if is_documented else job.progress, has_wait_tool=is_documented))
        stored = await anyio.to_thread.run_sync(self.outputs.partial, collected, job.tool, job.server)
        with stored:
            if job.done:  # it ended while it was being read
                return await self._tool_output(asked)
            if not (readable := stored.kept.size.bytes):
                raise BadRequest(retrieval.not_ready(job.progress))
            note = retrieval.partial(readable, job.seconds, collected.spool.total - readable)
            return await self._fit_page(lambda bound: add_note(note, bound, partial(exact.read_output, stored, asked)))

    async def _fit_page(self, read: Callable[[Bound], Page], bound: Bound | None = None) -> Page:
        """A page within the bound and within the room that is left."""
        bound = bound or self._bound()
        page = await anyio.to_thread.run_sync(read, bound)
        # Check the room after every wait. There must be no await between the last check and the reservation.
        while (
            (room := self.gate.room) is not None
            and (count := tokens.count(page.text, self.gate.settings.model).tokens) > room
            and bound.bytes > MIN_ANSWER_BYTES
        ):
            size = len(page.text.encode("utf-8", "replace"))
            bound = Bound(max(MIN_ANSWER_BYTES, min(bound.bytes, size) * room // count * 9 // 10), bound.chars)
            page = await anyio.to_thread.run_sync(read, bound)
        return page

    def _bound(self) -> Bound:
        settings = self.gate.settings
        return Bound(settings.answer_max_bytes or EVERYTHING.bytes, settings.answer_max_chars)
