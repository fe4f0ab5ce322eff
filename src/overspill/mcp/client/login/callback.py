"""The page on this machine to which the browser returns after a login. It accepts one answer, which must have the right state."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

import anyio
from mcp.shared.auth import AuthorizationCodeResult

from overspill.calls.tasks import open_group
from overspill.errors import ServerError, SettingsError
from overspill.mcp.client.login.guarded import is_error_code
from overspill.web.server import LET_IN, WebServer, open_listener

Paste: TypeAlias = Callable[[str], Awaitable[str]]
"""Shows what was wrong with the last address, and returns the one a person copied from the browser; empty if none is given."""
_HOST, _PATH = "127.0.0.1", "/callback"
_ANSWER_SECONDS = 300.0
_MAX_PASTES = 5
_DONE = "Overspill has the answer. You can close this window."
_WRONG = "This is not the answer that Overspill is waiting for."
_WRONG_PASTE = "That is not the address that the login ends on. Copy all of it from the browser's address bar, and paste it:"
_HEADERS = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"), (b"connection", b"close")]


class Callback:
    def __init__(self, port: int) -> None:
        self.port = port
        self.address = f"http://{_HOST}:{port}{_PATH}"
        self._state = ""
        self._answer: dict[str, str] = {}
        self._answered = anyio.Event()

    def expect(self, authorization_url: str) -> None:
        """Accept the answer to a login at this URL. Until this is called, every answer is refused."""
        self._state = parse_qs(urlsplit(authorization_url).query)["state"][0]

    def take(self, query: str) -> bool:
        """Accept the first answer with the right state. Returns whether this is that answer."""
        try:
            fields = {name: values[0] for name, values in parse_qs(query, max_num_fields=50).items()}
        except ValueError:
            return False
        is_right = bool(self._state) and secrets.compare_digest(fields.get("state", "").encode(), self._state.encode())
        if not is_right or self._answer or not {"code", "error"} & fields.keys():
            return False
        self._answer = fields
        self._answered.set()
        return True

    async def wait(self, paste: Paste | None = None) -> AuthorizationCodeResult:
        """Wait for the answer. Raises ServerError if the login is refused, or no answer comes in time."""
        failure = f"Nobody logged in within {_ANSWER_SECONDS / 60:g} minutes"

        async def take_pasted(paste: Paste) -> None:
            nonlocal failure
            for number in range(_MAX_PASTES):
                line = await paste(_WRONG_PASTE if number else "")
                if not line or self.take(line.strip().partition("?")[2].partition("#")[0]):
                    return
            failure = f"None of the {_MAX_PASTES} pasted addresses is the one that the login ends on"
            self._answered.set()

        with anyio.move_on_after(_ANSWER_SECONDS):
            async with anyio.create_task_group() as group:
                if paste is not None:
                    group.start_soon(take_pasted, paste)
                await self._answered.wait()
                group.cancel_scope.cancel()
        answer = self._answer
        if not answer:
            raise ServerError(f"{failure}. Nothing was stored. Run the command again.")
        if "code" not in answer:
            why = f" ({answer['error']})" if is_error_code(answer["error"]) else ""
            raise ServerError(f"The login was declined{why}. Nothing was stored.")
        return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer.get("iss"))

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        is_ours = scope["method"] == "GET" and scope["path"] == _PATH and hosts == [f"{_HOST}:{self.port}".encode()]
        is_taken = is_ours and self.take(scope["query_string"].decode("latin-1"))
        if is_taken:
            scope[LET_IN] = True
        await send({"type": "http.response.start", "status": 200 if is_taken else 400, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": (_DONE if is_taken else _WRONG).encode()})


@asynccontextmanager
async def open_callback(port: int) -> AsyncGenerator[Callback]:
    """Listen at this port, or at a free port if it is taken or 0."""
    try:
        listener = open_listener(_HOST, port)
    except SettingsError:
        listener = open_listener(_HOST, 0)
    app: Any = Callback(listener.getsockname()[1])
    server = WebServer(app, listener, lifespan="off", log_level="critical", timeout_graceful_shutdown=2)
    stop = anyio.Event()
    with listener:
        async with open_group() as group:
            group.start_soon(server.serve_until, stop)
            yield app
            stop.set()
