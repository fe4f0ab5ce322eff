"""Call a tool, whatever kind of callable it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, TypeAlias

import anyio
import anyio.to_thread

from overspill.jobs import Job

Tool: TypeAlias = Callable[..., Any]


async def perform(tool: Tool, args: Mapping[str, Any], threads: anyio.CapacityLimiter, job: Job | None = None) -> Any:
    """Coroutine functions run here, others in a worker thread of ours, so that no tool blocks the event loop."""
    if _is_async(tool):
        result = tool(**args)
    else:
        work = partial(tool, **args) if job is None else partial(_counted, job, tool, args)
        result = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=threads)
    return await result if inspect.isawaitable(result) else result


def _is_async(tool: Tool) -> bool:
    """Whether calling it returns at once: coroutine functions, async generators, objects with an async `__call__`."""
    try:
        return _inspect(tool)
    except TypeError:  # not hashable
        return _inspect.__wrapped__(tool)


@cache
def _inspect(tool: Tool) -> bool:
    while isinstance(tool, partial):
        tool = tool.func
    if not (inspect.isfunction(tool) or inspect.ismethod(tool) or inspect.isbuiltin(tool)):
        tool = type(tool).__call__
    return inspect.iscoroutinefunction(tool) or inspect.isasyncgenfunction(tool)


def _counted(job: Job, tool: Tool, args: Mapping[str, Any]) -> Any:
    job.threads += 1
    try:
        return tool(**args)
    finally:
        job.threads -= 1
