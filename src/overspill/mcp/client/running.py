"""A server that is up, and who uses it. Each user gets the notifications that belong to it, and no others."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import anyio
import anyio.abc
from mcp.shared.dispatcher import DispatchContext
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from overspill.mcp.client.framing import Raw
from overspill.mcp.client.handshake import as_mapping
from overspill.mcp.client.http import RedactingTransport
from overspill.mcp.client.login.keeper import Log
from overspill.mcp.client.peer import Peer
from overspill.mcp.client.process import ServerProcess
from overspill.mcp.client.streams import AnswerStream, IncomingStream, Notifications
from overspill.text.humanize import one_line

Progress: TypeAlias = Callable[[Raw], Awaitable[None]]
_MAX_LOGGED = 20  # methods


class User:
    """What one client has asked a server for, and the notifications that are on their way to it."""

    def __init__(self) -> None:
        self.peer = Peer()
        self.notifications = Notifications()
        self.progress: dict[str, Progress] = {}
        """By the token of a request."""
        self.streams: set[str] = set()
        """Ids of requests to listen."""
        self.uris: set[str] = set()
        """Resources that it subscribes to, in the older protocol."""
        self.pending = 0
        self.logging = 0
        """Its requests for which the server may send log messages. Stays above 0 if one was cancelled."""


class RunningServer:
    """Run `run` while it is used. `ended` is set once the server is gone."""

    def __init__(self, name: str, transport: ServerProcess | RedactingTransport, streams: tuple[Any, Any], log: Log) -> None:
        self.name = name
        self.transport = transport
        self.ended = anyio.Event()
        self.is_shared = False
        """Whether other clients may join."""
        self.only: User | None = User()
        """The only user that there has been; None once there was another. It gets everything."""
        self.users = [self.only]
        self._has_joined = False
        self._logger = self.only
        self._log = log
        self._logged: set[str] = set()
        self._tokens = itertools.count(1)
        self._answers = AnswerStream(streams[1])
        incoming = IncomingStream(streams[0], self._wait_for_room, self._answers.admit, transport.restore)
        self.dispatcher = JSONRPCDispatcher(incoming, self._answers)
        if isinstance(transport, RedactingTransport):
            transport.on_lost = self._mark_lost

    @property
    def pending(self) -> int:
        """How many requests have no answer yet."""
        return sum(user.pending for user in self.users)

    def new_token(self) -> str:
        return f"overspill-{next(self._tokens)}"

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        try:
            await self.dispatcher.run(self._on_request, _ignore, self._take, task_status=task_status)
        finally:
            self.ended.set()

    def join(self, peer: Peer) -> User:
        if self._has_joined:  # from now on, a client that does not read must not hold up the others
            self.only = None
            self.users.append(User())
            if isinstance(self.transport, ServerProcess):
                self.transport.is_shared = True
            for user in self.users:
                user.notifications.drop_when_full()
        self._has_joined = True
        self.users[-1].peer = peer
        return self.users[-1]

    def leave(self, user: User) -> None:
        self.users.remove(user)
        user.peer = Peer()  # a user that may log is kept when it is gone, but not the client behind it

    def may_log(self, user: User) -> bool:
        """Whether the server may send log messages to this user now: only one at a time, as they do not say whose they are."""
        if not self._logger.logging:
            self._logger = user
        return self._logger is user

    def _take(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Take a notification, in order. The SDK has handled cancellations, and would start a task for any other."""
        given = dict(params or {})
        for user in self._find_recipients(method, given) if method != "notifications/cancelled" else ():
            if not user.notifications.put(method, given):
                self._log_once(f"A client of the server {self.name} reads too slowly, so notifications for it are left out.")
        return True

    async def _wait_for_room(self) -> None:
        if self.only is not None:
            await self.only.notifications.wait_for_room()

    def _find_recipients(self, method: str, params: Raw) -> list[User]:
        if self.only is not None:
            return [self.only]
        stream = as_mapping(params.get("_meta")).get(SUBSCRIPTION_ID_META_KEY)
        if method == "notifications/progress":
            return [user for user in self.users if str(params.get("progressToken")) in user.progress]
        if stream is not None:
            return [user for user in self.users if str(stream) in user.streams]
        if method.endswith("/list_changed") or method == "notifications/tasks/status":  # each client knows its own tasks
            return self.users
        if method == "notifications/resources/updated":
            return [user for user in self.users if str(params.get("uri")) in user.uris]
        if method == "notifications/message" and self._logger.logging:
            return [user for user in self.users if user is self._logger]
        what = f"The shared server {self.name} sends {one_line(method)}"
        self._log_once(f"{what}, which does not say whom it is for, so nobody gets it.")
        return []

    async def _on_request(self, context: DispatchContext[Any], method: str, params: Mapping[str, Any] | None) -> Raw:
        # A request does not say whose call it belongs to.
        peer = Peer() if self.is_shared or self.only is None else self.only.peer
        try:
            return await peer.on_request(self.name, method, dict(params or {}))
        finally:
            if context.cancel_requested.is_set():  # then the SDK sends no answer
                self._answers.forget(context.request_id)

    def _mark_lost(self) -> None:
        """Note that the server seems to be gone. Pending requests still get their answer, or fail by themselves."""
        if not self.pending:
            self.ended.set()

    def _log_once(self, line: str) -> None:
        if line not in self._logged and len(self._logged) < _MAX_LOGGED:
            self._logged.add(line)
            self._log(line)


async def _ignore(*_: object) -> None:
    """Do nothing: `_take` has taken every notification."""
