"""Slow calls as tasks, for clients that declare the extension of 2026-07-28. Their servers need not know it.

A task is a background job: its id is the id of the output, and its result passes the gate when the client fetches it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

import anyio
import mcp_types
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY, ListenHandler
from mcp.shared.exceptions import MCPError

from overspill.calls.job import Job
from overspill.gate.kept import BoundedCache
from overspill.mcp.client.connection import Raw, as_mapping, list_pages
from overspill.mcp.client.handshake import TASKS
from overspill.mcp.client.server import Server
from overspill.mcp.proxy.client_request import ClientRequest, Context, PausedCalls
from overspill.mcp.proxy.outputs import refusing
from overspill.mcp.proxy.versions import ROUTED_IN, require_tasks
from overspill.record.events import now_ms
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.text.humanize import quote_line
from overspill.text.lenient_json import dumps

_METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
_ROUTED_METHODS = ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel")
_FAILED = "Failed to retrieve task: "
_RELATED = "io.modelcontextprotocol/related-task"
_MAX_ROUTED = 10_000  # tasks of one client
_FIELDS = ("status", "statusMessage", "createdAt", "lastUpdatedAt", "ttl", "pollInterval")
_POLL_MS = 1000
_MIN_SECONDS_BETWEEN_REPORTS = 1.0
_DAY_MS = 86_400_000
_MAX_LISTENED = 1_000  # tasks on one stream
_STATUS = {"waiting": "input_required", "ready": "completed", "failed": "failed", "cancelled": "cancelled"}

Forward: TypeAlias = Callable[[ClientRequest, Server, Raw], Awaitable[Raw]]
Deliver: TypeAlias = Callable[[ClientRequest, Job], Awaitable["Raw | MCPError"]]


def describe_task(job: Job, settings: Settings) -> Raw:
    created, message = job.created_ms, job.error or job.progress
    updated = min(now_ms(), created + round(job.seconds * 1000)) if job.done else now_ms()
    return {
        "taskId": job.artifact_id,
        "status": _STATUS.get(job.state, "working"),
        **({"statusMessage": message} if message else {}),
        "createdAt": _format_time(created),
        "lastUpdatedAt": _format_time(max(created, updated)),
        "ttlMs": settings.keep_days * _DAY_MS if settings.retention == "keep" and settings.keep_days else None,
        "pollIntervalMs": _POLL_MS,
    }


def require_extension(request: ClientRequest) -> None:
    if not request.knows_tasks:
        message = f"Missing required client capability: declare the extension {TASKS} with each request about a task."
        needed: Raw = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise MCPError(mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, needed)


class ServedTasks:
    """The tasks of one client, and of earlier ones with the same rights."""

    def __init__(self, session: Session, paused_calls: PausedCalls, deliver: Deliver) -> None:
        self._session = session
        self._paused_calls = paused_calls
        self._deliver = deliver

    async def answer(self, request: ClientRequest) -> Raw:
        require_tasks(request.method in _METHODS)
        require_extension(request)
        job = await self._find(request.params.get("taskId"))
        if request.method == "tasks/get":
            return await self._get(request, job)
        if request.method == "tasks/cancel":
            with refusing(_FAILED):
                await self._session.jobs.call_off(job)
        elif isinstance(responses := request.params.get("inputResponses"), dict):
            self._paused_calls.give_answers(job.artifact_id, as_mapping(responses))
        else:
            raise MCPError(mcp_types.INVALID_PARAMS, "inputResponses must be an object with an answer for each key.")
        return {}

    async def listen(self, ctx: Context, request: ClientRequest, wanted: Any, listen: ListenHandler) -> Any:
        """Serve a stream that reports tasks to the client. Each report holds what `tasks/get` would answer."""
        require_extension(request)
        ids: Any = as_mapping(wanted.notifications.model_extra).get("taskIds")
        jobs: list[Job] = []
        for id in cast("list[Any]", ids)[:_MAX_LISTENED] if isinstance(ids, list) else ():
            with suppress(MCPError):  # the acknowledgement leaves unknown tasks out
                jobs.append(await self._find(id))
        session, result = _AcknowledgingSession(ctx.session, [job.artifact_id for job in jobs]), None
        async with anyio.create_task_group() as group:
            for job in jobs:
                group.start_soon(self._report, request, job, session.acknowledged)
            result = await listen(dataclasses.replace(ctx, session=session), wanted)
            group.cancel_scope.cancel()
        return result

    async def _find(self, id: object) -> Job:
        if not isinstance(id, str):
            raise MCPError(mcp_types.INVALID_PARAMS, "A request about a task needs its taskId, a string.")
        with refusing(_FAILED):
            return await self._session.jobs.find(id)

    async def _get(self, request: ClientRequest, job: Job) -> Raw:
        asked = {} if job.done else self._paused_calls.list_questions(job.artifact_id)
        task = describe_task(job, self._session.settings)
        if asked:
            return {**task, "status": "input_required", "inputRequests": asked}
        if task["status"] == "input_required":  # no question waits for this client
            return {**task, "status": "working"}
        if not job.done or job.state == "cancelled":
            return task
        with refusing(_FAILED):
            is_nothing = job.error and job.kept is None
            outcome = MCPError(mcp_types.INTERNAL_ERROR, job.error) if is_nothing else await self._deliver(request, job)
        if isinstance(outcome, MCPError):
            error = outcome.error.model_dump(mode="json", exclude_none=True)
            return {**task, "status": "failed", "error": error}
        return {**task, "status": "completed", "result": outcome}

    async def _report(self, request: ClientRequest, job: Job, acknowledged: anyio.Event) -> None:
        await acknowledged.wait()
        while True:
            changed = job.changed
            task = await self._get(request, job)
            await request.notify("notifications/tasks", {**task, "_meta": {SUBSCRIPTION_ID_META_KEY: request.id}})
            if job.done:
                return
            await changed.wait()
            with anyio.move_on_after(_MIN_SECONDS_BETWEEN_REPORTS):  # many changes are one report
                while not job.done:
                    await job.changed.wait()


class RoutedTasks:
    """The tasks of 2025-11-25 that one client asked servers for, under ids that other clients cannot guess."""

    def __init__(self, call: Callable[[ClientRequest, Server, str], Awaitable[Raw]], forward: Forward) -> None:
        self._call = call
        self._forward = forward
        self._known: BoundedCache[tuple[Server, str, str]] = BoundedCache(_MAX_ROUTED)  # the server, its own id, the tool
        self._key = secrets.token_bytes(32)

    def take(self, request: ClientRequest, server: Server, tool: str, result: Raw) -> Raw | None:
        """If a result is a task that the client asked for, put the task into `request` and return an empty result."""
        task = as_mapping(result.get("task"))
        if not request.asks_for_task or "content" in result or not isinstance(theirs := task.get("taskId"), str):
            return None
        id = self._name(server.name, theirs)
        self._known.put(id, (server, theirs, tool))
        request.started_task = {**result, "task": _describe_routed(id, task)}
        return {"content": []}

    async def answer(self, request: ClientRequest) -> Raw:
        require_tasks(request.method in _ROUTED_METHODS and request.version == ROUTED_IN)
        if request.method == "tasks/list":
            servers = {server.name: server for server, _, _ in self._known.values()}
            return {"tasks": [task for server in servers.values() for task in await self._list(request, server)]}
        id = request.params.get("taskId")
        if not isinstance(id, str) or id not in self._known:
            raise MCPError(mcp_types.INVALID_PARAMS, f"{_FAILED}this client has started no task with this id.")
        server, theirs, tool = self._known[id]
        request.params = {"taskId": theirs, **({"_meta": request.meta} if request.meta else {})}
        if request.method != "tasks/result":
            if (task := await self._forward(request, server, request.params)).get("taskId", theirs) != theirs:
                raise MCPError(mcp_types.INTERNAL_ERROR, f"The server {server.name} answered about another task.")
            return _describe_routed(id, task)
        result = await self._call(request, server, tool)
        return {**result, "_meta": {**as_mapping(result.get("_meta")), _RELATED: {"taskId": id}}}

    def rename(self, server: str, task: Raw) -> Raw | None:
        """Return a server's report about a task with the client's id for it; None if the client did not ask for the task."""
        id = self._name(server, str(task.get("taskId")))
        return _describe_routed(id, task) if id in self._known else None

    def _name(self, server: str, theirs: str) -> str:
        return hashlib.blake2b(dumps([server, theirs]), key=self._key, digest_size=16).hexdigest()

    async def _list(self, request: ClientRequest, server: Server) -> list[Raw]:
        pages = await list_pages(lambda _, params: self._forward(request, server, params), "tasks/list", "tasks", server.name)
        found = [cast("list[Any]", tasks) for page in pages if isinstance(tasks := page.get("tasks"), list)]
        listed = [as_mapping(task) for tasks in found for task in tasks]
        return [mine for task in listed if (mine := self.rename(server.name, task)) is not None]


def _describe_routed(id: str, task: Raw) -> Raw:
    """Keep only the fields that describe a task, so that no result passes with it."""
    known = {key: task[key] for key in _FIELDS if not isinstance(task.get(key, {}), list | dict)}
    return {"taskId": id, **{key: quote_line(value) if isinstance(value, str) else value for key, value in known.items()}}


class _AcknowledgingSession:
    """Adds the tasks that a stream reports on to its first message, which the SDK writes."""

    def __init__(self, session: Any, task_ids: Sequence[str]) -> None:
        self._session = session
        self._task_ids = task_ids
        self.acknowledged = anyio.Event()

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        if isinstance(notification, mcp_types.SubscriptionsAcknowledgedNotification):
            params = notification.params
            params.notifications = params.notifications.model_copy(update={"taskIds": list(self._task_ids)})
        await self._session.send_notification(notification, related_request_id=related_request_id)
        self.acknowledged.set()


def _format_time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
