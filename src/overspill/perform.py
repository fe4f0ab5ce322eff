"""Call a tool, whatever kind of callable it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias, TypeVar

import anyio
import anyio.to_thread

from overspill.jobs import Job

Tool: TypeAlias = Callable[..., Any]
T = TypeVar("T")


async def perform(tool: Tool, args: Mapping[str, Any], threads: anyio.CapacityLimiter, job: Job | None = None) -> Any:
    """Coroutine functions run here, others in a worker thread of ours, so that no tool blocks the event loop."""
    if _is_async(tool):
        result = tool(**args)
    else:
        # In a tuple, because Trio refuses to hand over a coroutine.
        (result,) = await in_thread(lambda: (tool(**args),), threads, job)
    return await result if inspect.isawaitable(result) else result


async def in_thread(work: Callable[[], T], threads: anyio.CapacityLimiter, job: Job | None = None) -> T:
    """Foreign code that may block: it cannot be interrupted, but it can be left behind, and its job knows of it."""
    return await anyio.to_thread.run_sync(
        work if job is None else partial(_counted, job, work), abandon_on_cancel=True, limiter=threads
    )


def _is_async(tool: Tool) -> bool:
    """Whether calling it returns at once: coroutine functions, async generators, objects with an async `__call__`."""
    while isinstance(tool, partial):
        tool = tool.func
    if not (inspect.isfunction(tool) or inspect.ismethod(tool) or inspect.isbuiltin(tool)):
        tool = type(tool).__call__
    return inspect.iscoroutinefunction(tool) or inspect.isasyncgenfunction(tool)


def _counted(job: Job, work: Callable[[], T]) -> T:
    job.threads += 1
    try:
        return work()
    finally:
        job.threads -= 1
