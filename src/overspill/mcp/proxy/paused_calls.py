"""Calls that are paused until the client answers a question with its next request.

A client of the stateless protocol cannot be asked anything while it waits: it gets the question as the result of its call, and
calls again with the answer. A server of the older protocol waits for that answer within its first call, which is paused here.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Awaitable, Callable

import anyio
import anyio.abc
import mcp_types
from mcp.shared.exceptions import MCPError

from overspill.mcp.client.connection import Raw, as_mapping
from overspill.mcp.proxy.client_request import ClientRequest

_MAX_ANSWER_SECONDS = 600.0  # for a person to answer


class PausedCall:
    """A call that keeps running. Its questions and its result go to the request that waits for it at the time."""

    def __init__(self, request: ClientRequest) -> None:
        self.token = secrets.token_urlsafe(24)
        self.scope = anyio.CancelScope()
        self.request = request
        self.outcome: Raw | Exception | None = None
        self._asked: dict[str, Raw] = {}
        self._answers: Raw = {}
        self._numbers = itertools.count(1)
        self._changed = anyio.Event()
        request.ask_later = self.ask

    async def ask(self, method: str, params: Raw) -> Raw:
        key = f"input-{next(self._numbers)}"
        self._asked[key] = {"method": method, "params": params}
        self._announce_change()
        try:
            with anyio.move_on_after(_MAX_ANSWER_SECONDS):
                while key not in self._answers:
                    await self._changed.wait()
                return self._answers.pop(key)
        finally:
            self._asked.pop(key, None)
        raise MCPError(mcp_types.REQUEST_TIMEOUT, f"The client did not answer within {_MAX_ANSWER_SECONDS:g} s.")

    def answer(self, responses: Raw) -> None:
        for key, response in responses.items():
            if self._asked.pop(key, None) is not None:
                self._answers[key] = response
        self._announce_change()

    async def next_reply(self) -> Raw:
        """Wait for what the client gets next: the result, or a question."""
        while self.outcome is None and not self._asked:
            await self._changed.wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        if self.outcome is not None:
            return self.outcome
        return {"resultType": "input_required", "inputRequests": dict(self._asked), "requestState": self.token}

    async def run(self, work: Callable[[], Awaitable[Raw]]) -> None:
        try:
            with self.scope:
                self.outcome = await work()
        except Exception as error:  # it belongs to the client that waits
            self.outcome = error
        if self.outcome is None:
            self.outcome = MCPError(mcp_types.REQUEST_TIMEOUT, "The call was cancelled.")
        self.request.is_answered = True
        self._announce_change()

    def _announce_change(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


class PausedCalls:
    """The paused calls of one client, by a token that only this client knows."""

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self._group = group
        self._waiting: dict[str, PausedCall] = {}

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    async def start(self, request: ClientRequest, work: Callable[[], Awaitable[Raw]]) -> Raw:
        call = PausedCall(request)
        self._group.start_soon(self._run, call, work)
        return await self._next_reply(call)

    async def resume(self, request: ClientRequest) -> Raw:
        """Continue a paused call with the client's answers."""
        call = self._waiting.pop(str(request.params["requestState"]), None)
        if call is None:
            raise MCPError(mcp_types.INVALID_PARAMS, "No call is waiting for that requestState. Make the call again without it.")
        call.request.continue_as(request)
        call.answer(as_mapping(request.params.get("inputResponses")))
        return await self._next_reply(call)

    async def _next_reply(self, call: PausedCall) -> Raw:
        try:
            result = await call.next_reply()
        except anyio.get_cancelled_exc_class():
            call.scope.cancel()
            raise
        if result.get("requestState") == call.token:
            self._waiting[call.token] = call
        return result

    async def _run(self, call: PausedCall, work: Callable[[], Awaitable[Raw]]) -> None:
        """Keep the result for a client that comes back late, but not forever."""
        await call.run(work)
        if call.token in self._waiting:
            await anyio.sleep(_MAX_ANSWER_SECONDS)
            self._waiting.pop(call.token, None)
