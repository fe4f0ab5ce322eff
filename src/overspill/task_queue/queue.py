"""The queue of jobs, on pydocket and a Redis server. It needs asyncio."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Literal, TypeAlias

import anyio
from docket import Docket
from redis.exceptions import RedisError

from overspill.errors import QueueError
from overspill.task_queue.address import QueueAddress
from overspill.task_queue.payload import QueuedCall, encode_call
from overspill.task_queue.pickles import guard_unpickling

_TASK_PREFIX = "overspill:"
_ANSWER_SECONDS = 10.0  # for one request
_REMEMBER = timedelta(hours=1)  # how a job has ended; the store has its output

QueueState: TypeAlias = Literal["queued", "running", "ended", "unknown"]
_STATES: dict[bytes, QueueState] = {
    b"scheduled": "queued",
    b"queued": "queued",
    b"running": "running",
    b"completed": "ended",
    b"failed": "ended",
    b"cancelled": "ended",
}


def task_name(tool: str) -> str:
    return _TASK_PREFIX + tool


def make_docket(address: QueueAddress) -> Docket:
    """Without the tasks that come with it: a worker runs only the tools that its user named."""
    docket = Docket(name=address.name, url=address.url, execution_ttl=_REMEMBER)
    docket.tasks.clear()
    return docket


async def read_state(docket: Docket, job: str) -> QueueState:
    async with docket.redis() as redis:
        state: Any = await redis.hget(docket.runs_key(job), "state")
    return _STATES.get(state, "unknown")


async def _placeholder(payload: str) -> None:
    """The tools themselves are on the workers."""


class JobQueue:
    """Connects when it is first used."""

    def __init__(self, address: QueueAddress) -> None:
        self._address = address
        self._docket: Docket | None = None
        self._opening = anyio.Lock()

    async def put(self, call: QueuedCall) -> None:
        docket = await self._open()
        docket.register(_placeholder, names=[task_name(call.tool)])
        async with self._ask("queue a call"):
            await docket.add(task_name(call.tool), key=call.job)(encode_call(call))

    async def cancel(self, job: str) -> None:
        docket = await self._open()
        async with self._ask("cancel a job"):
            await docket.cancel(job)

    async def find_state(self, job: str) -> QueueState:
        """Of a job that was put here. After an hour, a job that has ended is unknown."""
        docket = await self._open()
        async with self._ask("ask about a job"):
            return await read_state(docket, job)

    async def list_tools(self) -> set[str]:
        """The tools that workers offer at the moment."""
        docket = await self._open()
        async with self._ask("ask for workers"):
            found = await docket.workers()
        names = {name for worker in found for name in worker.tasks}
        return {name.removeprefix(_TASK_PREFIX) for name in names if name.startswith(_TASK_PREFIX)}

    async def close(self) -> None:
        docket, self._docket = self._docket, None
        if docket is not None:
            with anyio.move_on_after(_ANSWER_SECONDS, shield=True):
                await docket.__aexit__(None, None, None)

    async def _open(self) -> Docket:
        async with self._opening:
            if self._docket is None:
                docket = make_docket(self._address)
                # Shielded, because half a connection could not be closed.
                with guard_unpickling(), anyio.CancelScope(shield=True):
                    async with self._ask("connect"):
                        await docket.__aenter__()
                self._docket = docket
            return self._docket

    @asynccontextmanager
    async def _ask(self, doing: str) -> AsyncGenerator[None]:
        try:
            with anyio.fail_after(_ANSWER_SECONDS):
                yield
        except (RedisError, OSError, ValueError) as error:  # a ValueError: others have written there
            raise QueueError(
                f"Could not {doing}: the queue at {self._address.shown} does not answer ({type(error).__name__}). Try again; if "
                "it stays like this, see whether `jobs` names the right server and that it runs."
            ) from error
