"""One request of a client: who sent it, in which version, how to send messages back, and how to ask the client something.

A client of the stateless protocol cannot answer while it waits: it gets the question as the result of its call, and
calls again with the answer. A server of the older protocol waits for that answer within its first call, which is paused here.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from typing import Any, TypeAlias

import anyio
import anyio.abc
import mcp_types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.shared.dispatcher import DispatchContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from overspill.calls.job import Job
from overspill.mcp.client.connection import Raw, as_mapping
from overspill.mcp.client.results import format_progress
from overspill.mcp.client.tasks import knows_tasks
from overspill.mcp.proxy.versions import Ask, drop_from_request
from overspill.text.lenient_json import clean_value

Context: TypeAlias = "ServerRequestContext[Any, Any]"
_MAX_ANSWER_SECONDS = 600.0  # for a person to answer


class ClientRequest:
    def __init__(self, ctx: Context) -> None:
        self.id = ctx.request_id
        self.method = ctx.method
        self.params: Raw = drop_from_request(ctx.method, dict(ctx.params or {}))
        self.version = ctx.protocol_version
        declared = as_mapping(as_mapping((ctx.params or {}).get("_meta")).get(mcp_types.CLIENT_CAPABILITIES_META_KEY))
        self.knows_tasks = self.is_modern and knows_tasks(declared)
        """Whether its client accepts a task in place of a result."""
        self.meta: Raw = as_mapping(self.params.get("_meta"))
        self.is_answered = False
        """Whether the client has its answer. Nothing more can be sent for this request after that."""
        self.ask_later: Ask | None = None
        """How to ask a client that can answer questions only between two of its calls; None for other clients."""
        self.is_wrapped = False  # whether it came as `call_tool`, whose headers cannot repeat the arguments of the tool
        self.is_task = False
        """Whether the client has a task in place of the result. It can then answer questions until the task ends."""
        self.started_task: Raw | None = None  # the answer for a client that asked for a task
        self.job: Job | None = None
        # The typed session would drop fields that its models do not know. Its two channels carry anything.
        self._channel: DispatchContext[Any] = ctx.session._request_outbound  # pyright: ignore[reportPrivateUsage]
        self.http_request: Any = ctx.request
        """The HTTP request it came in, if any."""
        self.connection: Connection = ctx.session._connection  # pyright: ignore[reportPrivateUsage]

    @property
    def is_modern(self) -> bool:
        return self.version in MODERN_PROTOCOL_VERSIONS

    @property
    def asks_for_task(self) -> bool:
        """Whether it asks for a task of 2025-11-25, or for the result of one."""
        return self.method == "tasks/result" or self.params.get("task") is not None

    @property
    def log_level(self) -> str | None:
        return self.meta.get(mcp_types.LOG_LEVEL_META_KEY)

    @property
    def can_ask(self) -> bool:
        if self.is_answered and not self.is_task:
            return False
        return self.ask_later is not None or not self.is_modern

    def continue_as(self, later: ClientRequest) -> None:
        """Send everything with the client's later request for the same call from now on."""
        self.meta, self._channel = later.meta, later._channel

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        await self._channel.notify(method, self.make_sendable(params))

    async def progress(self, params: Raw) -> None:
        """Pass progress on under the client's own token."""
        if "progressToken" in self.meta:
            await self.notify("notifications/progress", {**params, "progressToken": self.meta["progressToken"]})
        if self.job is not None:
            self.job.note_progress(format_progress(params))

    async def ask(self, method: str, params: Raw) -> Raw:
        """Pass a server's request on to the client. A person may have to answer, so the call's clocks stop."""
        with self.job.pause_clocks() if self.job else nullcontext():
            if self.ask_later is not None:
                return await self.ask_later(method, params)
            channel = self._channel if self._channel.can_send_request else self.connection.outbound
            return await channel.send_raw_request(method, self.make_sendable(params))

    def make_sendable(self, value: Any) -> Any:
        """Remove lone surrogates if the SDK cannot write them: in the older protocol over HTTP."""
        return value if self.is_modern or self.http_request is None else clean_value(value)


NOT_WAITING = "The client can be asked only while it waits for an answer."


class PausedCall:
    """A call that keeps running. Its questions and its result go to the request that waits for it at that time."""

    def __init__(self, request: ClientRequest) -> None:
        self.token = secrets.token_urlsafe(24)
        self.scope = anyio.CancelScope()
        self.request = request
        self.outcome: Raw | Exception | None = None
        self.asked: dict[str, Raw] = {}
        self.answers: Raw = {}
        self._numbers = itertools.count(1)
        self.changed = anyio.Event()
        request.ask_later = self.ask

    async def ask(self, method: str, params: Raw) -> Raw:
        key = f"input-{next(self._numbers)}"
        self.asked[key] = {"method": method, "params": params}
        self.announce_change()
        try:
            with anyio.move_on_after(_MAX_ANSWER_SECONDS):
                while key not in self.answers and (self.outcome is None or self.request.is_task):
                    await self.changed.wait()
                if key in self.answers:
                    return self.answers.pop(key)
                # This call has ended, so the client would not see a question that the server asks for another call.
                raise MCPError(mcp_types.INVALID_REQUEST, NOT_WAITING)
        finally:
            self.asked.pop(key, None)
        raise MCPError(mcp_types.REQUEST_TIMEOUT, f"The client did not answer within {_MAX_ANSWER_SECONDS:g} s.")

    def take_answers(self, responses: Raw) -> None:
        for key, response in responses.items():
            if self.asked.pop(key, None) is not None:
                self.answers[key] = response
        self.announce_change()

    def announce_change(self) -> None:
        changed, self.changed = self.changed, anyio.Event()
        changed.set()
        if self.request.job is not None:
            self.request.job.announce_change()


class PausedCalls:
    """The paused calls of one client, by a token that only this client knows."""

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self._group = group
        self._waiting: dict[str, PausedCall] = {}
        self._tasks: dict[str, PausedCall] = {}
        """Calls that the client has as tasks, by the task's id."""

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    async def start(self, request: ClientRequest, work: Callable[[], Awaitable[Raw]]) -> Raw:
        call = PausedCall(request)
        self._group.start_soon(self._run, call, work)
        return await self._next_reply(call)

    def knows(self, request: ClientRequest) -> bool:
        return str(request.params["requestState"]) in self._waiting

    async def resume(self, request: ClientRequest) -> Raw:
        call = self._waiting.pop(str(request.params["requestState"]), None)
        if call is None:
            raise MCPError(mcp_types.INVALID_PARAMS, "No call is waiting for that requestState. Make the call again without it.")
        call.request.continue_as(request)
        call.take_answers(as_mapping(request.params.get("inputResponses")))
        return await self._next_reply(call)

    def list_questions(self, task: str) -> Raw:
        return dict(self._tasks[task].asked) if task in self._tasks else {}

    def give_answers(self, task: str, responses: Raw) -> None:
        """Pass answers on to a task. Answers to questions that were not asked, or were answered before, are ignored."""
        if task in self._tasks:
            self._tasks[task].take_answers(responses)

    async def _next_reply(self, call: PausedCall) -> Raw:
        """Wait for what the client gets next: the result, or a question."""
        try:
            while call.outcome is None and not call.asked:
                await call.changed.wait()
        except anyio.get_cancelled_exc_class():
            call.scope.cancel()
            raise
        if isinstance(call.outcome, Exception):
            raise call.outcome
        if call.outcome is not None:
            return call.outcome
        self._waiting[call.token] = call
        return {"resultType": "input_required", "inputRequests": dict(call.asked), "requestState": call.token}

    async def _run(self, call: PausedCall, work: Callable[[], Awaitable[Raw]]) -> None:
        outcome: Raw | Exception = MCPError(mcp_types.REQUEST_TIMEOUT, "The call was cancelled.")
        try:
            with call.scope:
                outcome = await work()
        except Exception as error:  # raised again for the client that waits for this call
            outcome = error
        call.outcome, call.request.is_answered = outcome, True
        if call.request.is_task and not isinstance(outcome, Exception):
            self._tasks = {id: each for id, each in self._tasks.items() if not (each.request.job and each.request.job.done)}
            self._tasks[outcome["taskId"]] = call
        call.announce_change()
        if call.token in self._waiting:  # for a client that comes back late, but not forever
            await anyio.sleep(_MAX_ANSWER_SECONDS)
            self._waiting.pop(call.token, None)
