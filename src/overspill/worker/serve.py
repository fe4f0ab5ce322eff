"""Take calls from a queue and run them, until the worker is stopped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import anyio
from docket import ConcurrencyLimit, CurrentExecution, Docket, Execution, Worker
from docket.dependencies import AdmissionBlocked
from msgspec import Struct
from redis.exceptions import RedisError

from overspill.errors import BadRequest
from overspill.settings import Settings
from overspill.store.protocols import Store
from overspill.task_queue.address import QueueAddress
from overspill.task_queue.payload import decode_call
from overspill.task_queue.queue import guard_unpickling, make_docket, read_state, task_name
from overspill.worker.run_call import CallRunner
from overspill.worker.tools import WorkerTool, WorkerTools

_REDELIVERY = timedelta(seconds=30)  # after this long without a sign of life, another worker takes over a worker's calls
_AGAIN_AFTER = timedelta(seconds=2)  # if another worker has the call, or the store does not answer
_CHECK_EVERY = timedelta(milliseconds=250)  # for calls that have ended; a new one arrives without waiting for it
_SCHEDULE_EVERY = timedelta(seconds=1)  # for calls that are tried again
_START_CHECK_SECONDS = 0.05
_LOOK_EVERY = timedelta(seconds=5)

_CURRENT: Execution = CurrentExecution()

logger = logging.getLogger("overspill.worker")


class WorkerOptions(Struct, frozen=True):
    max_running: int = 10
    """How many calls this worker runs at the same time."""
    grace_seconds: float = 30.0
    """How long calls may take to end once the worker is stopping. Repeatable ones are then left to another worker."""
    redelivery_seconds: float = _REDELIVERY.total_seconds()


_USUAL = WorkerOptions()


class ToolWorker:
    def __init__(
        self,
        tools: WorkerTools,
        store: Store,
        address: QueueAddress,
        settings: Settings,
        options: WorkerOptions = _USUAL,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self._tools = tools
        self._address = address
        self._options = options
        self._runner = CallRunner(store, settings, secrets or {})
        self._hurry = anyio.Event()

    async def serve(self, stop: anyio.Event, ready: Callable[[], None] = lambda: None) -> None:
        docket = make_docket(self._address)

        async def end_calls() -> None:
            await anyio.sleep(self._options.grace_seconds)
            self._hurry.set()

        with guard_unpickling():
            async with docket:
                for tool in self._tools.values():
                    docket.register(self._make_task(docket, tool), names=[task_name(tool.name)])
                async with anyio.create_task_group() as group:
                    worker = _SturdyWorker(
                        docket,
                        concurrency=self._options.max_running,
                        redelivery_timeout=timedelta(seconds=self._options.redelivery_seconds),
                        minimum_check_interval=_CHECK_EVERY,
                        scheduling_resolution=_SCHEDULE_EVERY,
                        schedule_automatic_tasks=False,
                        fallback_task=_refuse,
                    )
                    async with worker:
                        group.start_soon(worker.run_forever)
                        group.start_soon(_watch_queue, docket, worker.name, self._address.shown, ready)
                        await stop.wait()
                        group.start_soon(end_calls)
                    group.cancel_scope.cancel()

    def _make_task(self, docket: Docket, tool: WorkerTool) -> Callable[..., Any]:
        async def run(payload: str, execution: Execution = _CURRENT) -> None:
            await self._run(docket, tool, payload, execution)

        async def run_few(
            payload: str,
            execution: Execution = _CURRENT,
            limit: ConcurrencyLimit = ConcurrencyLimit(max_concurrent=tool.max_running or 1),  # noqa: B008  # pydocket's way
        ) -> None:
            await self._run(docket, tool, payload, execution)

        return run_few if tool.max_running else run

    async def _run(self, docket: Docket, tool: WorkerTool, payload: str, execution: Execution) -> None:
        try:
            call = decode_call(payload)
            if call.job != execution.key or call.tool != tool.name:
                raise BadRequest("This is not a call that Overspill has queued: it names another job or tool.")
        except BadRequest as refused:
            logger.warning("Refused a message from the queue. %s", refused)
            return

        async def is_wanted() -> bool:
            try:
                return await read_state(docket, call.job) != "ended"
            except (RedisError, OSError):  # a queue that does not answer cannot cancel anything
                return True

        ending = await self._runner.run(call, tool, is_wanted, self._hurry)
        if ending != "over":  # put the call back into the queue and take this message out, in one step
            raise AdmissionBlocked(
                execution, "another worker, a store that is away, or the end of this worker", retry_delay=_AGAIN_AFTER
            )


async def _refuse(*args: Any, execution: Execution = _CURRENT, **more: Any) -> None:
    logger.warning("Refused a message from the queue: it is malformed, or names a tool that this worker does not have.")


class _SturdyWorker(Worker):
    """Survives messages whose data in the queue pydocket cannot read. Such a message is removed."""

    async def _execute(self, execution: Execution, session: Any) -> None:
        try:
            await super()._execute(execution, session)
        except (AdmissionBlocked, RedisError):
            raise
        except Exception as error:
            logger.warning("Refused a message from the queue: its record is malformed (%s).", type(error).__name__)


async def _watch_queue(docket: Docket, name: str, shown: str, ready: Callable[[], None]) -> None:
    """Call `ready` once sessions can see the worker's tools, and report when the queue does not answer. Never gives up."""
    is_ready, is_away = False, False
    while True:
        try:
            is_known = any(each.name == name for each in await docket.workers())
        except (RedisError, OSError, ValueError) as error:  # ValueError if another program wrote an entry
            if not is_away:
                logger.warning("The queue %s does not answer (%s). Trying again until it does.", shown, type(error).__name__)
            is_away = True
        else:
            if is_away:
                logger.warning("The queue %s answers again.", shown)
            is_away = False
            if is_known and not is_ready:
                is_ready = True
                ready()
        await anyio.sleep(_LOOK_EVERY.total_seconds() if is_ready else _START_CHECK_SECONDS)
