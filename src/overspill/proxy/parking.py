"""Calls that wait for the client between two of its requests.

A client of the stateless protocol cannot be asked anything while it waits: its call is answered with what is wanted, and it calls
again with the answers. A server of the older protocol knows nothing of that and waits in its first call. Such a call is parked.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.abc
import mcp_types
from mcp.shared.exceptions import MCPError

from overspill.mcp_client.link import Raw

_LONGEST = 600.0  # seconds a person may take


class Parked:
    """A call that goes on. What it asks and how it ends is told to whoever waits for it at that moment."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)
        self.scope = anyio.CancelScope()
        self.outcome: Raw | Exception | None = None
        self._asked: dict[str, Raw] = {}
        self._answers: dict[str, Any] = {}
        self._numbers = itertools.count(1)
        self._news = anyio.Event()

    async def ask(self, method: str, params: Raw) -> Raw:
        key = f"input-{next(self._numbers)}"
        self._asked[key] = {"method": method, "params": params}
        self._tell()
        with anyio.move_on_after(_LONGEST):
            while key not in self._answers:
                await self._news.wait()
            return self._answers.pop(key)
        self._asked.pop(key, None)
        raise MCPError(mcp_types.REQUEST_TIMEOUT, f"The client gave no answer within {_LONGEST:g} s.")

    def answer(self, responses: Raw) -> None:
        for key, response in responses.items():
            if self._asked.pop(key, None) is not None:
                self._answers[key] = response
        self._tell()

    async def next(self) -> Raw:
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
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()


class Parking:
    """Parked calls of one scope, by the token that only its client knows."""

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self._group = group
        self._waiting: dict[str, Parked] = {}

    def known(self, state: object) -> Parked | None:
        return self._waiting.pop(state, None) if isinstance(state, str) else None

    async def begin(self, parked: Parked, work: Callable[[], Awaitable[Raw]]) -> Raw:
        self._group.start_soon(parked.run, work)
        return await self.go_on(parked)

    async def go_on(self, parked: Parked) -> Raw:
        try:
            result = await parked.next()
        except anyio.get_cancelled_exc_class():
            parked.scope.cancel()
            raise
        if result.get("requestState") == parked.token:
            self._waiting[parked.token] = parked
        return result
