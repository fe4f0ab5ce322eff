"""Calls that wait for the client between two of its requests.

A client of the stateless protocol cannot be asked anything while it waits: its call is answered with what is wanted, and it calls
again with the answers. A server of the older protocol knows nothing of that and waits in its first call. Such a call is call.
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

_MAX_ANSWER_SECONDS = 600.0  # seconds a person may take


class PausedCall:
    """A call that goes on. What it asks and how it ends is told to whoever waits for it at that moment."""

    def __init__(self, request: ClientRequest) -> None:
        self.token = secrets.token_urlsafe(24)
        self.scope = anyio.CancelScope()
        self.request = request
        self.outcome: Raw | Exception | None = None
        self._asked: dict[str, Raw] = {}
        self._answers: Raw = {}
        self._numbers = itertools.count(1)
        self._news = anyio.Event()
        request.ask_later = self.ask

    async def ask(self, method: str, params: Raw) -> Raw:
        key = f"input-{next(self._numbers)}"
        self._asked[key] = {"method": method, "params": params}
        self._announce_change()
        try:
            with anyio.move_on_after(_MAX_ANSWER_SECONDS):
                while key not in self._answers:
                    await self._news.wait()
                return self._answers.pop(key)
        finally:
            self._asked.pop(key, None)
        raise MCPError(mcp_types.REQUEST_TIMEOUT, f"The client gave no answer within {_MAX_ANSWER_SECONDS:g} s.")

    def answer(self, responses: Raw) -> None:
        for key, response in responses.items():
            if self._asked.pop(key, None) is not None:
                self._answers[key] = response
        self._announce_change()

    async def next_reply(self) -> Raw:
        """What the client is to be told now: the result, or what is wanted of it first."""
        while self.outcome is None and not self._asked:
            await self._news.wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        if self.outcome is not None:
            return self.outcome
        return {"resultType": "input_required", "inputRequests": dict(self._asked), "requestState": self.token}

    async def run(self, work: Callable[[], Awaitable[Raw]]) -> None:
        try:
            with self.scope:
                self.outcome = await work()
        except Exception as error:  # whatever it is belongs to the client that waits for it
            self.outcome = error
        if self.outcome is None:
            self.outcome = MCPError(mcp_types.REQUEST_TIMEOUT, "The call was given up.")
        self.request.is_answered = True
        self._announce_change()

    def _announce_change(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()


class PausedCalls:
    """Parked calls of one scope, by the token that only its client knows."""

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
        """The client calls again, with what was wanted of it."""
        call = self._waiting.pop(str(request.params["requestState"]), None)
        if call is None:
            raise MCPError(
                mcp_types.INVALID_PARAMS, "No call waits under that requestState. Make the call again from its beginning."
            )
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
        """Its end waits for a client that comes back late, but not for ever."""
        await call.run(work)
        if call.token in self._waiting:
            await anyio.sleep(_MAX_ANSWER_SECONDS)
            self._waiting.pop(call.token, None)
