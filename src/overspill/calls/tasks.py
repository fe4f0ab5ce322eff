"""One task that owns all other tasks of a session, so callers need not keep a scope open for them. Also groups of tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any, TypeAlias

import anyio
from anyio.abc import TaskGroup

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
_owners: set[asyncio.Task[None]] = set()  # asyncio itself keeps only weak references


@asynccontextmanager
async def open_group() -> AsyncGenerator[TaskGroup]:
    """A task group that ends its tasks when its block raises something, and raises that without wrapping it."""
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        try:
            yield group
        except Exception as error:
            failure = error
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure


class TaskOwner:
    """Runs work in tasks between `open` and `cancel`. The work must not raise.

    It uses the event loop's own task group, which starts a task in a third of the time that anyio's takes.
    """

    start: Callable[[Work], object]
    _stop: Callable[[], object]

    def __init__(self) -> None:
        self._ready = anyio.Event()
        self._gone = anyio.Event()

    async def open(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            import trio  # noqa: PLC0415 - there only when the program runs on it

            trio.lowlevel.spawn_system_task(self._own_on_trio)
        else:
            # The only task outside a group: it holds the group, which must not belong to the first caller. Its context is empty,
            # because it would keep everything that the first caller's context refers to.
            task = loop.create_task(self._own_on_asyncio(), context=Context())
            _owners.add(task)
            task.add_done_callback(_owners.discard)
            self._stop = task.cancel
        try:
            await self._ready.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._ready.wait()
            self._stop()
            raise

    async def cancel(self, seconds: float) -> None:
        """Cancel everything, and wait at most that long for it to end."""
        if self._ready.is_set():
            self._stop()
            with anyio.move_on_after(seconds, shield=True):
                await self._gone.wait()

    async def _own_on_asyncio(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                self.start = lambda work: group.create_task(work())
                self._ready.set()
                await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return
        finally:
            self._gone.set()

    async def _own_on_trio(self) -> None:
        import trio  # noqa: PLC0415 - as above

        try:
            async with trio.open_nursery() as nursery:
                self.start, self._stop = nursery.start_soon, nursery.cancel_scope.cancel
                self._ready.set()
                await trio.sleep_forever()
        finally:
            self._gone.set()
