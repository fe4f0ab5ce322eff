"""Call a tool of any kind, collect its result, and keep the result when no caller waits for it any more."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import FunctionType
from typing import Any, TypeAlias, TypeVar, cast

import anyio
import anyio.to_thread
from msgspec import Struct

from overspill.calls.job import Job
from overspill.errors import BadRequest, SessionClosed, describe_type
from overspill.gate.collect import CollectedResult, block_text
from overspill.gate.gate import Gate
from overspill.gate.off_loop import run_off_loop
from overspill.record.events import name_type
from overspill.settings import Settings
from overspill.text.humanize import one_line
from overspill.types import Kept, ToolCall
from overspill.wording import replies as wording

Tool: TypeAlias = Callable[..., Any]
T = TypeVar("T")


class RemoteTool(Struct, frozen=True):
    """A tool that runs on the workers of a task engine. The worker limits its time and stores its output."""

    run: Callable[[dict[str, Any]], Awaitable[Any]]

    async def __call__(self, /, **args: Any) -> Any:
        return await self.run(args)


class StoredElsewhere(Struct, frozen=True):
    """Returned by a remote tool whose output stays where the worker has stored it."""

    kept: Kept | None
    """The stored output; None if the tool failed and left nothing but its error."""
    error: str = ""


class Threads:
    """A limited number of worker threads for tools, apart from those that Overspill itself needs."""

    def __init__(self, max_threads: int) -> None:
        self._limiter = anyio.CapacityLimiter(max_threads)

    async def run(self, job: Job, work: Callable[[], T]) -> T:
        """Run `work` in a thread. A cancelled job does not wait for its thread, which cannot be interrupted."""

        def count_and_work() -> tuple[T]:
            """The result is in a tuple because it may be a coroutine, and trio rejects a function that returns one."""
            job.threads += 1
            try:
                return (work(),)
            finally:
                job.threads -= 1

        # A thread that waits for this call is idle. If it counted, the last thread would wait for itself.
        limiter = anyio.CapacityLimiter(1) if job.in_thread else self._limiter
        (result,) = await anyio.to_thread.run_sync(count_and_work, abandon_on_cancel=True, limiter=limiter)
        return result


async def invoke_tool(tool: Tool, args: Mapping[str, Any], job: Job, threads: Threads) -> Any:
    """Coroutine functions run here, others in a worker thread, so that no tool blocks the event loop."""
    if type(tool) is FunctionType and tool.__code__.co_flags & inspect.CO_COROUTINE:  # true of most tools, and quick to find out
        return await tool(**args)
    result = tool(**args) if _is_async(tool) else await threads.run(job, partial(tool, **args))
    return await result if inspect.isawaitable(result) else result


def _is_async(tool: Tool) -> bool:
    """Whether calling it does not block: coroutine functions, async generators, objects with an async `__call__`."""
    while isinstance(tool, partial):
        tool = tool.func
    if not (inspect.isfunction(tool) or inspect.ismethod(tool) or inspect.isbuiltin(tool)):
        tool = type(tool).__call__
    return inspect.iscoroutinefunction(tool) or inspect.isasyncgenfunction(tool)


def check_arguments(tool: str, args: object) -> None:
    if not isinstance(args, dict | Mapping):  # checking for dict first is faster
        unread = "a JSON object with a value for each name, and what was sent is not. Call it again with valid JSON."
        wanted = unread if isinstance(args, str) else f"an object with a value for each name, not {describe_type(args)}."
        raise BadRequest(f"The arguments of {one_line(tool)} must be {wanted}")
    for name in cast("Mapping[object, object]", args):
        if not isinstance(name, str):
            raise BadRequest(f"The arguments of {one_line(tool)} must have strings as names, not {describe_type(name)}.")


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
        except BaseException as error:  # the tool's code: anything it raises is an answer and must not end the program
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
        """The result of a job that was cancelled before its tool started."""
        collected = CollectedResult(partial(self.gate.new_spool, self.settings))
        collected.fail(_interruption(job))
        return collected

    async def _keep(self, job: Job, collected: CollectedResult) -> None:
        error, job.error_type = _error(job, collected), name_type(collected.error)
        redact = partial(self.gate.redaction.redact, tool=self.call.name, server=self.call.server)
        # Cut it afterwards: a part of a secret would not be found.
        job.error = wording.brief_error(await run_off_loop(partial(redact, error), len(error)))
        collected.broke_off, is_whole = redact(collected.broke_off), wording.brief_error(error) == error
        if collected.error is not None and not collected.broke_off and is_whole and error in (_CANCELLED, collected.failure):
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
        return collected.failure
    texts = [collected.plain] if collected.plain is not None else map(block_text, collected.content or ())
    return next((text for text in texts if text), "error") if collected.is_error else ""
