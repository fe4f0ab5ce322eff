"""Call a tool, whatever type of callable it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType
from typing import Any, TypeAlias, TypeVar

import anyio
import anyio.to_thread
from msgspec import Struct

from overspill.calls.job import Job
from overspill.types import Kept

Tool: TypeAlias = Callable[..., Any]
T = TypeVar("T")


class RemoteTool:
    """A tool that runs on the workers of a task engine. The worker limits its time and stores its output."""

    async def __call__(self, /, **args: Any) -> Any:
        raise NotImplementedError


class StoredElsewhere(Struct, frozen=True):
    """What a remote tool returns if its output stays where the worker has stored it."""

    kept: Kept | None
    """None if it failed and left nothing else."""
    error: str = ""


class Threads:
    """A limited number of worker threads for tools, apart from those that Overspill itself needs."""

    def __init__(self, max_threads: int) -> None:
        self._limiter = anyio.CapacityLimiter(max_threads)

    async def run(self, job: Job, work: Callable[[], T]) -> T:
        """A cancelled job does not wait for its thread, which cannot be interrupted."""
        # A thread that waits for this call is idle. If it counted, the last thread would wait for itself.
        limiter = anyio.CapacityLimiter(1) if job.in_thread else self._limiter
        (result,) = await anyio.to_thread.run_sync(partial(_run_counted, job, work), abandon_on_cancel=True, limiter=limiter)
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


def _run_counted(job: Job, work: Callable[[], T]) -> tuple[T]:
    """The result is in a tuple because it may be a coroutine, and trio rejects a function that returns one."""
    job.threads += 1
    try:
        return (work(),)
    finally:
        job.threads -= 1
