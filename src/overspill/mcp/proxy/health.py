"""Whether the proxy runs, and whether it can store outputs, for load balancers and orchestrators. They have no token."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import anyio
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

_SECONDS_BETWEEN_CHECKS = 5.0  # so that whoever asks often does not keep the store busy
_METHODS = ("GET", "HEAD")


class Health:
    """Answers `/health` and `/ready`, by any name and to anyone, with one word that says nothing else."""

    def __init__(self, app: ASGIApp, *, has_store: Callable[[], Awaitable[bool]]) -> None:
        self._app = app
        self._has_store = has_store
        self._is_ready = False
        self._next_check = 0.0
        self._checking = anyio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await self._answer(scope) if scope["type"] == "http" and scope["method"] in _METHODS else None
        await (answer or self._app)(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response | None:
        match scope["path"]:
            case "/health":
                return PlainTextResponse("ok\n")
            case "/ready":
                is_ready = await self._check()
                return PlainTextResponse("ready\n" if is_ready else "not ready\n", 200 if is_ready else 503)
            case _:
                return None

    async def _check(self) -> bool:
        async with self._checking:
            if time.monotonic() >= self._next_check:
                self._is_ready = await self._has_store()
                self._next_check = time.monotonic() + _SECONDS_BETWEEN_CHECKS
            return self._is_ready
