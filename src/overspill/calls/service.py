"""Make a tool call: fill references, race the tool against the clock, reply, and record the call."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

import anyio
import anyio.to_thread
import msgspec

from overspill.calls.background import BackgroundJobs
from overspill.calls.invoke import RemoteTool, Threads, Tool, ToolBody, check_arguments, invoke_tool
from overspill.calls.job import Job, current
from overspill.calls.ledger_writing import LedgerWriting
from overspill.calls.scheduler import Attend, JobScheduler
from overspill.errors import BadRequest, RefError, SessionClosed
from overspill.gate.collect import text_block
from overspill.gate.gate import Gate
from overspill.gate.intent import find_intent
from overspill.gate.recorder import ReplyRecorder
from overspill.gate.replies import ReplyDraft
from overspill.reading import references
from overspill.reading.references import Check
from overspill.record.events import JobChanged, ReferenceUsed, ToolCalled, name_type, now_ms
from overspill.record.logs import log_cut
from overspill.settings import Settings
from overspill.text.arguments import encode_arguments
from overspill.types import JobInfo, Reply, ToolCall
from overspill.wording import replies

_MAX_FILLING = 4  # for each server, how many calls are filled at the same time: checking its schemas may take long
Errors: TypeAlias = Literal["answer", "raise"]
Background: TypeAlias = bool | Literal["now"]
Resolve: TypeAlias = Callable[[ToolCall, Settings, Check | None], tuple[Mapping[str, Any], Sequence[references.ReferenceUse]]]

Deliver: TypeAlias = Callable[[JobInfo], Awaitable[Reply | None]]
"""Returns the reply with a job's output; None while the job is running."""


StandIn: TypeAlias = Callable[[Job], Awaitable[Reply]]
"""Returns the reply that stands for an output that a worker has stored."""


class CallService:
    """`resolve` replaces references to stored outputs in a call's arguments, or raises RefError.

    `background` and `attend` are as in `JobScheduler`.
    """

    def __init__(
        self,
        gate: Gate,
        recorder: ReplyRecorder,
        resolve: Resolve,
        stand_in: StandIn,
        background: BackgroundJobs,
        attend: Attend | None = None,
        *,
        notice: bool = True,
    ) -> None:
        self.jobs = JobScheduler(gate.settings.max_running, self._record_job_change, background, attend)
        self._gate = gate
        self._recorder = recorder
        self._resolve = resolve
        self._notice = notice
        self._threads = Threads(gate.settings.max_running)
        self._stand_in = stand_in
        self.settle = LedgerWriting(gate.ledger, self.jobs).settle
        self._filling: dict[str, anyio.CapacityLimiter] = {}

    async def call(
        self,
        call: ToolCall,
        tool: Tool,
        *,
        errors: Errors = "answer",
        background: Background | None = None,
        check: Check | None = None,
        for_program: bool = False,
    ) -> Reply:
        self.jobs.check_may_call()
        started = time.perf_counter()
        settings = self._gate.settings.for_tool(call.name, call.server)
        written = encode_arguments(call.args)
        try:
            check_arguments(call.name, call.args)
            filled = self._fill_secrets(call, written, tool) if self._gate.settings.redact.fill else call
            args = await self._fill_references(filled, written, settings, check)
        except (BadRequest, RefError) as error:
            if errors == "raise":
                raise
            return self.refuse(call, self._gate.redaction.redact_error(error, call.name, call.server))
        run = ToolBody(call, args, tool, settings, self._gate, self._threads)
        job = self._make_job(call, tool, settings)
        try:
            if background == "now":
                self.jobs.start(job, run)
            elif settings.async_ if background is None else background:
                await self.jobs.run(job, run, settings.async_timeout_secs)
            else:
                await self.jobs.block(job, run)
        except BaseException:
            if job.result is not None and not job.background:
                job.result.discard()
            raise
        if job.background or job.kept is not None:
            return self._record(call, written, await self._answer_without_result(job, call, settings), started)
        # Break the cycle between the job and its result, so that both are freed without the garbage collector.
        collected, job.result = job.result or run.collect_unfinished(job), None
        try:
            if errors == "raise" and collected.error is not None:
                self.refuse(call, collected.error, replies.brief_error(collected.failure), is_raised=True)
                raise self._gate.redaction.redact_error(collected.error, call.name, call.server)
            reply = await self._gate.deliver(call, collected, settings, for_program=for_program)
            if reply.kept is not None:
                await self.settle()
            return self._record(call, written, reply, started, collected.error)
        except BaseException:
            collected.discard()
            raise

    async def start(self, call: ToolCall, tool: Tool) -> Job:
        self.jobs.check_open()
        settings = self._gate.settings.for_tool(call.name, call.server)
        check_arguments(call.name, call.args)
        args = await self._fill_references(self._fill_secrets(call, encode_arguments(call.args), tool), None, settings, None)
        job = self.start_job(self._make_job(call, tool, settings), call, args, tool)
        await self.settle()
        return job

    def start_job(self, job: Job, call: ToolCall, args: Mapping[str, Any], tool: Tool) -> Job:
        """Start a call in the background, after its references were filled in."""
        settings = self._gate.settings.for_tool(call.name, call.server)
        self._gate.intents.note(job.id, find_intent(self._gate, call, settings))
        self.jobs.start(job, ToolBody(call, args, tool, settings, self._gate, self._threads))
        return job

    def resume(self, change: JobChanged, tool: Tool) -> None:
        """Continue a job of an earlier session under the same id."""
        call = ToolCall("", change.tool, {}, change.server)
        job = self._make_job(call, tool, self._gate.settings.for_tool(call.name, call.server))
        job.id, job.task = change.id, change.task
        self.start_job(job, call, {}, tool)

    async def turn(self, calls: Sequence[ToolCall], answer: Callable[[ToolCall], Any], deliver: Deliver) -> list[Reply]:
        """Answer every call, with its output if that is ready. If no call has news for the model, wait for the first to end."""
        replies: dict[int, Reply] = {}
        failures: list[Exception] = []

        async def one(index: int, call: ToolCall) -> None:
            try:
                replies[index] = await answer(call)
            except (BadRequest, SessionClosed) as error:
                replies[index] = self.refuse(call, error)
            except Exception as error:  # from the host's code; raised below, because the task group would wrap it
                failures.append(error)
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for index, call in enumerate(calls):
                group.start_soon(one, index, call)
        if failures:
            raise failures[0]
        if replies and not any(reply.new for reply in replies.values()):
            await self.jobs.wait_any()
        for index, reply in replies.items():  # jobs may have become ready while other calls ran
            replies[index] = reply if reply.job is None or reply.new else await deliver(reply.job) or reply
        await self.settle()
        return [replies[index] for index in range(len(calls))]

    async def execute(self, execute: Callable[[ToolCall], Any], call: ToolCall, /, **args: Any) -> Any:
        """A tool that the host runs: passes the call, with its references filled in, to the host's `execute`."""
        job = current.get()
        assert job is not None
        return await invoke_tool(partial(execute, msgspec.structs.replace(call, args=args)), {}, job, self._threads)

    def _fill_secrets(self, call: ToolCall, written: bytes | None, tool: Tool) -> ToolCall:
        return self._gate.redaction.fill(call, written, is_elsewhere=isinstance(tool, RemoteTool))

    async def _fill_references(
        self, call: ToolCall, written: bytes | None, settings: Settings, check: Check | None
    ) -> Mapping[str, Any]:
        """`written`: the arguments as JSON, if they have been written."""
        may_have = settings.refs.enabled and (written is None or references.OPENING in written)
        if not may_have or not references.may_have_references(call.args):
            return call.args
        filling = self._filling.setdefault(call.server, anyio.CapacityLimiter(_MAX_FILLING))
        args, uses = await anyio.to_thread.run_sync(self._resolve, call, settings, check, limiter=filling)
        for use in uses:
            self._gate.ledger.record(ReferenceUsed(now_ms(), call.name, use.id, use.bytes))
        return args

    def _record(
        self,
        call: ToolCall,
        written: bytes | None,
        reply: Reply,
        started: float,
        error: BaseException | None = None,
        *,
        is_raised: bool = False,
    ) -> Reply:
        if self._gate.budget is not None:
            self._gate.ledger.note_settlements(self._gate.budget)
        kept, cut = reply.kept, reply.truncation
        if kept is None and cut is not None and cut.was_truncated:
            log_cut(call, cut)
        self._gate.ledger.record(
            ToolCalled(
                now_ms(),
                tool=call.name,
                server=call.server,
                kind=call.kind,
                status="failed" if reply.is_error else "ok",
                latency=round((time.perf_counter() - started) * 1000),
                chars_in=len(written.decode()) if written else 0,
                chars_out=len(reply.text),
                id=kept.id if kept else "",
                reason=kept.reason if kept else None,
                truncated=(kept is not None and not reply.passed) or cut is not None,
                call=call.id,
                # The host decides what to show of an error.
                reply=self._recorder.add(reply.content) if self._recorder.is_on and not is_raised else None,
                error_type=name_type(error) if error else "",
                tokens=reply.tokens if cut is not None or (kept is not None and not reply.passed) else 0,
            )
        )
        return reply

    def refuse(self, call: ToolCall, error: BaseException, why: str = "", *, is_raised: bool = False) -> Reply:
        """Answer a call that was not made, or whose failure is raised to the host."""
        why = why or str(error)
        reply = Reply(text=why, content=[text_block(why)], is_error=True, model=self._gate.settings.model)
        return self._record(call, encode_arguments(call.args), reply, time.perf_counter(), error, is_raised=is_raised)

    def _make_job(self, call: ToolCall, tool: Tool, settings: Settings) -> Job:
        is_elsewhere = isinstance(tool, RemoteTool)
        job = Job(call.name, None if is_elsewhere else settings.tool_timeout, self.jobs.new_scope, server=call.server)
        job.is_elsewhere = is_elsewhere
        if self._gate.redaction.is_on:
            job.hide = partial(self._gate.redaction.redact, tool=call.name, server=call.server)
        return job

    async def _answer_without_result(self, job: Job, call: ToolCall, settings: Settings) -> Reply:
        """The reply to a call that is still running, or whose result a worker has stored."""
        await self.settle()
        if not job.background:
            return await self._stand_in(job)
        self._gate.intents.note(job.id, find_intent(self._gate, call, settings))
        answer, fits = self._gate.reserve(
            [ReplyDraft((settings.wording.running(job.artifact_id, job.tool, has_notice=self._notice),))]
        )
        content, model = [text_block(answer.text)], self._gate.settings.model
        return Reply(text=answer.text, content=content, fits=fits, job=job.info, new=False, model=model)

    def _record_job_change(self, job: Job) -> None:
        if job.is_handed_over:
            return
        self._gate.ledger.record(
            JobChanged(
                now_ms(),
                job.id,
                job.tool,
                job.state,
                round(job.seconds, 3),
                job.error or job.missing,
                server=job.server,
                kept=job.kept is not None or job.id in self._gate.kept,
                form=job.form,
                is_elsewhere=job.is_elsewhere,
                is_repeatable=job.is_repeatable,
                error_type=job.error_type,
                task=job.task,
            )
        )
