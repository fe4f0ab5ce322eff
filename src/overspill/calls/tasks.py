"""One task that owns all other tasks of a session, so that no caller has to keep a scope open for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Protocol, TypeAlias

import anyio

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class _Group(Protocol):
    """The event loop's own task group: it starts a task in a third of the time that anyio's takes."""

    def spawn(self, own: Work) -> None: ...
    async def own(self, ready: Callable[[], None]) -> None: ...
    def start(self, work: Work) -> None: ...
    def cancel(self) -> None: ...


class TaskOwner:
    """Takes work between `open` and `cancel`. What it runs must not raise."""

    def __init__(self) -> None:
        self._group: _Group = _OnAsyncio() if _on_asyncio() else _OnTrio()
        self.start = self._group.start
        self._ready = anyio.Event()
        self._gone = anyio.Event()

    async def open(self) -> None:
        async def own() -> None:
            try:
                await self._group.own(self._ready.set)
            finally:
                self._gone.set()

        self._group.spawn(own)
        try:
            await self._ready.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._ready.wait()
            self._group.cancel()
            raise

    async def cancel(self, seconds: float) -> None:
        """Cancel everything, and wait at most that long for it to end."""
        if self._ready.is_set():
            self._group.cancel()
            with anyio.move_on_after(seconds, shield=True):
                await self._gone.wait()


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_owners: set[asyncio.Task[None]] = set()  # asyncio itself keeps only weak references


class _OnAsyncio:
    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None

    def spawn(self, own: Work) -> None:
        """The only task outside a group: it holds the group, which must not belong to the first caller. Its context is empty,
        because it would keep whatever the first caller's context refers to."""
        self._task = asyncio.get_running_loop().create_task(own(), context=Context())
        _owners.add(self._task)
        self._task.add_done_callback(_owners.discard)

    async def own(self, ready: Callable[[], None]) -> None:
        try:
            async with asyncio.TaskGroup() as self._group:
                ready()
                await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return

    def start(self, work: Work) -> None:
        assert self._group is not None
        self._group.create_task(work())

    def cancel(self) -> None:
        assert self._task is not None
        self._task.cancel()


class _OnTrio:
    def __init__(self) -> None:
        import trio  # noqa: PLC0415 - there only when the program runs on it

        self._trio = trio
        self._nursery: trio.Nursery | None = None

    def spawn(self, own: Work) -> None:
        self._trio.lowlevel.spawn_system_task(own)

    async def own(self, ready: Callable[[], None]) -> None:
        async with self._trio.open_nursery() as self._nursery:
            ready()
            await self._trio.sleep_forever()

    def start(self, work: Work) -> None:
        assert self._nursery is not None
        self._nursery.start_soon(work)

    def cancel(self) -> None:
        assert self._nursery is not None
        self._nursery.cancel_scope.cancel()
