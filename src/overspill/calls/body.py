"""What a job does with a tool: run it, collect its result, and keep the result when no caller waits for it any more."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
from msgspec import Struct

from overspill.calls.invoke import StoredElsewhere, Threads, Tool, invoke_tool
from overspill.calls.job import Job
from overspill.errors import SessionClosed
from overspill.gate.collect import CollectedResult, block_text
from overspill.gate.gate import Gate
from overspill.record.events import name_type
from overspill.settings import Settings
from overspill.types import ToolCall
from overspill.wording import replies as wording

_CANCELLED = "cancelled"


class ToolBody(Struct, frozen=True):
    """A job's `result` is what was collected so far; None once it is kept."""

    call: ToolCall
    args: Mapping[str, Any]
    """The call's arguments, with stored outputs in place of the references to them."""
    tool: Tool
    settings: Settings
    gate: Gate
    threads: Threads

    async def run(self, job: Job) -> None:
        collected = job.result = CollectedResult(partial(self.gate.new_spool, self.settings, lambda: job.id))
        try:
            with job.scope:
                result = await invoke_tool(self.tool, self.args, job, self.threads)
                if isinstance(result, StoredElsewhere):
                    job.kept, job.error, job.result = result.kept, result.error, None
                elif not collected.take_now(result):
                    await collected.take(result, partial(self.threads.run, job))
        except anyio.get_cancelled_exc_class():
            _fail(job, collected, _interruption(job))
            raise
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # the tool's code: whatever it raises is an answer and must not end the program
            _fail(job, collected, error)
        else:
            if job.scope.cancelled_caught:
                _fail(job, collected, _interruption(job))

    async def conclude(self, job: Job) -> None:
        collected: CollectedResult | None = job.result
        if collected is None:
            return
        if job.running:
            collected.fail(_interruption(job))
        if job.background:
            with anyio.CancelScope(shield=True):
                await self._keep(job, collected)
            job.result = None
        elif job.unwanted:
            collected.discard()

    def collect_unfinished(self, job: Job) -> CollectedResult:
        """For a job that was cancelled before its tool started."""
        collected = CollectedResult(partial(self.gate.new_spool, self.settings))
        collected.fail(_interruption(job))
        return collected

    async def _keep(self, job: Job, collected: CollectedResult) -> None:
        job.error, job.error_type = _error(job, collected), name_type(collected.error)
        if collected.error is not None and not collected.broke_off and job.error in (_CANCELLED, collected.failure):
            return  # the error is the whole output
        late = await self.gate.keep_for_later(self.call, collected, self.settings)
        job.blocks, job.kept, job.missing, job.error = late.blocks, late.kept, late.missing, job.error or late.error


def _fail(job: Job, collected: CollectedResult, error: BaseException) -> None:
    # A job that was given up has its answer already.
    if not job.concluded:
        collected.fail(error)


def _interruption(job: Job) -> Exception:
    if job.timed_out:
        return TimeoutError(job.overdue)
    return SessionClosed(wording.CANCELLED) if job.cancelled else RuntimeError(wording.CANCELLED_ITSELF)


def _error(job: Job, collected: CollectedResult) -> str:
    if isinstance(collected.error, SessionClosed):
        return _CANCELLED
    if collected.error is not None:
        return wording.brief_error(collected.failure)
    texts = [collected.plain] if collected.plain is not None else map(block_text, collected.content or ())
    return wording.brief_error(next((text for text in texts if text), "error")) if collected.is_error else ""
