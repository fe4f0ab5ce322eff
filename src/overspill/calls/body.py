"""What a job does with a tool: run it, take what it gives, and keep that when nobody waits for it any more."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
from msgspec import Struct

from overspill import wording
from overspill.calls.invoke import Threads, Tool, invoke_tool
from overspill.calls.job import Job
from overspill.errors import SessionClosed
from overspill.gate.collect import CollectedResult, block_text
from overspill.gate.gate import Gate
from overspill.settings import Settings
from overspill.types import ToolCall


class ToolBody(Struct, frozen=True):
    """A job's `result` is what was collected so far; once it is kept, nothing."""

    call: ToolCall
    args: Mapping[str, Any]
    """Those of the call, with stored outputs in the place of references to them."""
    tool: Tool
    settings: Settings
    gate: Gate
    threads: Threads

    async def run(self, job: Job) -> None:
        got = job.result = self.gate.collector(self.settings, lambda: job.id)
        try:
            with job.scope:
                result = await invoke_tool(self.tool, self.args, job, self.threads)
                if not got.take_now(result):
                    await got.take(result, partial(self.threads.run, job))
        except anyio.get_cancelled_exc_class():
            _fail(job, got, _interruption(job))
            raise
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # the tool's own code: whatever it raises is an answer, and no end of the program
            _fail(job, got, error)
        else:
            if job.scope.cancelled_caught:
                _fail(job, got, _interruption(job))

    async def conclude(self, job: Job) -> None:
        got: CollectedResult | None = job.result
        if got is None:
            return
        if job.running:
            got.fail(_interruption(job))
        if job.background:
            with anyio.CancelScope(shield=True):
                await self._keep(job, got)
            job.result = None
        elif job.unwanted:
            got.discard()

    def collect_unfinished(self, job: Job) -> CollectedResult:
        """For a job that was cancelled before its tool began."""
        got = self.gate.collector(self.settings)
        got.fail(_interruption(job))
        return got

    async def _keep(self, job: Job, got: CollectedResult) -> None:
        job.error = _error(job, got)
        if got.error is not None and not got.broke_off and job.error == got.failure:
            return  # the error is all there is, and whole
        late = await self.gate.keep_for_later(self.call, got, self.settings)
        job.blocks, job.missing, job.error = late.blocks, late.missing, job.error or late.error


def _fail(job: Job, got: CollectedResult, error: BaseException) -> None:
    # One that was given up has been answered for already.
    if not job.concluded:
        got.fail(error)


def _interruption(job: Job) -> Exception:
    if job.timed_out:
        return TimeoutError(wording.timeout_reason(job.may_take))
    return SessionClosed(wording.CANCELLED) if job.cancelled else RuntimeError(wording.CANCELLED_ITSELF)


def _error(job: Job, got: CollectedResult) -> str:
    if isinstance(got.error, SessionClosed):
        return "cancelled"
    if got.error is not None:
        return wording.brief_error(got.failure)
    texts = [got.plain] if got.plain is not None else map(block_text, got.content or ())
    return wording.brief_error(next((text for text in texts if text), "error")) if got.is_error else ""
