"""The queue of jobs, on pydocket and a Redis server. It needs asyncio.

pydocket pickles arguments. Unpickling a hostile message can execute code, or take any amount of memory. Overspill's messages hold
one string. For Overspill's own queues, and for nothing else in the process, `guard_unpickling` reads single values and refuses
everything else. A message that cannot be read does not stop anything.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Literal, TypeAlias

import anyio
from docket import Docket, execution, strikelist
from redis.exceptions import RedisError

from overspill import handles
from overspill.errors import MissingPackage, QueueError
from overspill.task_queue.address import QueueAddress
from overspill.task_queue.payload import QueuedCall, encode_call
from overspill.text.regex import regex

_TASK_PREFIX = "overspill:"
_ANSWER_SECONDS = 10.0  # for one request
_REMEMBER = timedelta(hours=1)  # how long to remember how a job has ended; the store has its output

QueueState: TypeAlias = Literal["queued", "running", "ended", "unknown"]
_STATES: dict[bytes, QueueState] = {
    **dict.fromkeys((b"scheduled", b"queued"), "queued"),
    b"running": "running",
    **dict.fromkeys((b"completed", b"failed", b"cancelled"), "ended"),
}


def task_name(tool: str) -> str:
    return _TASK_PREFIX + tool


def make_docket(address: QueueAddress) -> Docket:
    """The queue, without pydocket's built-in tasks: a worker runs only the tools that its user named."""
    docket = Docket(name=address.name, url=address.url, execution_ttl=_REMEMBER)
    docket.tasks.clear()
    return docket


async def read_state(docket: Docket, job: str) -> QueueState:
    async with docket.redis() as redis:
        state: Any = await redis.hget(docket.runs_key(job), "state")
    return _STATES.get(state, "unknown")


async def _placeholder(payload: str) -> None:
    """Stands in for the tools, which are on the workers."""


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
        """The state of a job that was put here. A job that ended more than an hour ago is unknown."""
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
        except (RedisError, OSError, ValueError) as error:  # ValueError if another program has written to the queue's keys
            raise QueueError(
                f"Could not {doing}: the queue at {self._address.shown} does not answer ({type(error).__name__}). Try again; if "
                "this persists, check that its server is running, and that `jobs` names the right one."
            ) from error


_is_guarded: ContextVar[bool] = ContextVar("overspill_guarded", default=False)
_MAX_BYTES = 1024 * 1024  # the limit for a message; arguments have at most 16 KiB
_MAX_STEPS = 16  # the limit for a pickle; a string in a tuple takes seven
_MAX_NUMBER = 2**31
_PLAIN_STEPS = regex(
    "PROTO|FRAME|STOP|MEMOIZE|(SHORT_)?BINUNICODE|TUPLE1|EMPTY_(TUPLE|DICT)|NONE|NEW(TRUE|FALSE)|BININT[12]?|BINFLOAT"
)


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is not plain data")


class _GuardedPickle:
    def __init__(self, original: Any) -> None:
        self._original = original

    def loads(self, data: bytes) -> Any:
        if not _is_guarded.get():
            return self._original.loads(data)
        for number, (step, _, _) in enumerate(pickletools.genops(data)):
            if number == _MAX_STEPS or not _PLAIN_STEPS.fullmatch(step.name):
                raise pickle.UnpicklingError("more than a single value")
        return _PlainUnpickler(io.BytesIO(data)).load()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


@cache
def _install() -> None:
    for module in (execution, strikelist):
        original: Any = getattr(module, "cloudpickle", None)
        if original is None:
            raise MissingPackage("Running tools on workers safely", "docket")
        module.cloudpickle = _GuardedPickle(original)  # pyright: ignore[reportAttributeAccessIssue]
    calls: Any = execution.Execution
    strikes: Any = strikelist.StrikeInstruction
    read_call, read_strike = calls.from_message, strikes.from_message

    async def read_any_call(docket: Any, message: dict[bytes, bytes], **more: Any) -> Any:
        if not _is_guarded.get():
            return await read_call(docket, message, **more)
        try:
            _check_size(message)
            call = await read_call(docket, message, **more)
            is_call = type(call.args) is tuple and type(call.kwargs) is dict and call.when.tzinfo is not None
            if not is_call or not (0 <= call.attempt < _MAX_NUMBER and 0 <= call.generation < _MAX_NUMBER):
                raise TypeError("not a call")
            return call
        except Exception:  # hostile data can fail in any way. The worker takes this call out of the queue like any other
            id, refuse = more["message_id"], more["fallback_task"]
            return calls(docket, refuse, (), {}, handles.new(), datetime.now(UTC), 1, message_id=id)

    def read_any_strike(message: dict[bytes, bytes]) -> Any:
        if not _is_guarded.get():
            return read_strike(message)
        try:
            _check_size(message)
            return read_strike(message)
        except Exception:  # a worker reads all strikes before it begins
            return strikelist.Restore(None, None, strikelist.Operator.EQUAL, None)  # a strike that does nothing

    calls.from_message, strikes.from_message = read_any_call, read_any_strike


def _check_size(message: dict[bytes, bytes]) -> None:
    if sum(map(len, message.values())) > _MAX_BYTES:
        raise ValueError("too large")


@contextmanager
def guard_unpickling() -> Generator[None]:
    """Code that runs inside, and in tasks started inside, unpickles only plain data."""
    _install()
    before = _is_guarded.set(True)
    try:
        yield
    finally:
        _is_guarded.reset(before)
