"""Call a tool, whatever kind of callable it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType
from typing import Any, TypeAlias, TypeVar

import anyio
import anyio.to_thread

from overspill.calls.job import Job

Tool: TypeAlias = Callable[..., Any]
T = TypeVar("T")


class Threads:
    """Worker threads for tools, so many at most, and none of those that everything else needs."""

    def __init__(self, most: int) -> None:
        self._limiter = anyio.CapacityLimiter(most)

    async def run(self, job: Job, work: Callable[[], T]) -> T:
        """A cancelled job goes on without its thread, which cannot be interrupted."""
        # A thread that waits for this call is idle meanwhile; were it counted, the last one would wait for itself.
        limiter = anyio.CapacityLimiter(1) if job.in_thread else self._limiter
        (result,) = await anyio.to_thread.run_sync(partial(_run_counted, job, work), abandon_on_cancel=True, limiter=limiter)
        return result


async def invoke_tool(tool: Tool, args: Mapping[str, Any], job: Job, threads: Threads) -> Any:
    """Coroutine functions run here, others in a worker thread, so that no tool blocks the event loop."""
    if type(tool) is FunctionType and tool.__code__.co_flags & inspect.CO_COROUTINE:  # most tools, and nothing more to ask
        return await tool(**args)
    result = tool(**args) if _is_async(tool) else await threads.run(job, partial(tool, **args))
    return await result if inspect.isawaitable(result) else result


def _is_async(tool: Tool) -> bool:
    """Whether calling it returns at once: coroutine functions, async generators, objects with an async `__call__`."""
    while isinstance(tool, partial):
        tool = tool.func
    if not (inspect.isfunction(tool) or inspect.ismethod(tool) or inspect.isbuiltin(tool)):
        tool = type(tool).__call__
    return inspect.iscoroutinefunction(tool) or inspect.isasyncgenfunction(tool)


def _run_counted(job: Job, work: Callable[[], T]) -> tuple[T]:
    """In a tuple: the result may be a coroutine, and trio takes a function that returns one for a mistake."""
    job.threads += 1
    try:
        return (work(),)
    finally:
        job.threads -= 1
