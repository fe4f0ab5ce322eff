"""A server that is kept running: restarted with growing pauses when it ends, and asked over the connection that is up."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types
from mcp.shared.exceptions import MCPError
from msgspec.structs import replace

from overspill.calls.job import current
from overspill.calls.tasks import open_group
from overspill.errors import Ended, LoginNeeded, ServerError, Unheard
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.connection import (
    ClientIdentity,
    Connect,
    Progress,
    ServerConnection,
    connect_alone,
    describe_error,
    list_pages,
)
from overspill.mcp.client.framing import Raw
from overspill.mcp.client.handshake import Handshake
from overspill.mcp.client.known_lists import Known, KnownLists
from overspill.mcp.client.listings import select_usable
from overspill.mcp.client.login.keeper import Log
from overspill.mcp.client.login.storage import LoginStore
from overspill.mcp.client.peer import ServerAccess
from overspill.mcp.client.rest import Rest
from overspill.mcp.client.results import format_progress, require_result, to_output
from overspill.mcp.client.tasks import Answer, TaskFollower, is_task
from overspill.text.humanize import one_line, quote_line
from overspill.types import Output

_START_SECONDS = 60.0  # until a server that does not answer counts as hanging
_MIN_PAUSE, _MAX_PAUSE = 0.25, 30.0
_MAX_RETRY_WAIT = 5.0  # a call waits for a restart that is at most this far away
_LOGIN_WAIT = 1.0  # how long a call waits for a server that needs a login
_FAILED_WAIT, _STARTING_WAIT, _LIST_SECONDS = 3.0, 30.0, 10.0  # the proxy must answer within 45 seconds
_MAX_LOGGED_ONCE = 100  # lines about one server
_STEADY_SECONDS = 60.0  # after this uptime, the next pause is short again


class Server:
    """Start `run` in a task group. Call everything else while it runs."""

    def __init__(
        self,
        access: ServerAccess,
        *,
        on_up: Callable[[ServerConnection], Awaitable[None]] | None = None,
        lists: str = "",
        connect: Connect = connect_alone,
    ) -> None:
        self._access = access
        self.config, self.name, self.log = access.config, access.config.name, access.log
        self.problem, self.needs_login, self.starts = "", False, 0
        self._logins = LoginStore(access.environ, self.config.login_owner)
        self.lists = KnownLists(lists, access)
        self._on_up, self._connect = on_up, connect
        self.rest = Rest(lambda: access.peer.needs(self.name))
        self._connection: ServerConnection | None = None
        self._changed = anyio.Event()
        self._failed, self._next_start, self._closed = 0, 0.0, False
        self._param_headers: dict[str, Mapping[tuple[str, ...], str]] = {}
        self._logged: set[str] = set()

    @property
    def pid(self) -> int | None:
        """The id of its process, if one is up."""
        return getattr(self.connection.transport, "pid", None) if self.connection else None

    @property
    def state(self) -> str:
        return "up" if self.connection else self.problem or ("idle" if self.rest.is_on else "starting")

    async def run(self) -> None:
        pause, logged = _MIN_PAUSE, ""
        try:
            while True:
                began, died, stamp = anyio.current_time(), False, self._logins.stamp(self.config.url)
                try:
                    wanted = await self._run_once()
                    await wanted.wait()
                    continue
                except* Exception as group:  # the failure of one server must not end other servers
                    self.problem = describe_error(group, self.name)
                    self.needs_login = group.subgroup(LoginNeeded) is not None
                    died = self._connection is None and group.subgroup(Ended) is not None
                client = self._access.client
                if died and client.is_modern and self.config.command:
                    # Servers built with the first SDKs exit on an unknown method, such as the newer handshake.
                    self._access = replace(self._access, client=replace(client, is_modern=False))
                    continue
                if self._connection is not None or self.problem != logged:  # do not log the same failure again
                    self.log(self.problem)
                logged = self.problem
                self._failed += self._connection is None
                self._connection = None
                if anyio.current_time() - began > _STEADY_SECONDS:
                    pause = _MIN_PAUSE
                self._next_start = anyio.current_time() + pause
                self._announce_change()
                with anyio.move_on_after(pause):
                    await (self._logins.wait_for_change(self.config.url, stamp) if self.needs_login else anyio.sleep_forever())
                pause = min(pause * 2, _MAX_PAUSE)
        finally:
            self._connection, self._closed = None, True
            self._announce_change()

    async def wait_until_connected(self, within: float = _START_SECONDS) -> ServerConnection:
        """Return the connection. Waits up to `within` seconds for a start that is under way or about to begin.

        Raises ServerError if the connection is not up by then, or cannot be expected soon.
        """
        failed = self._failed
        self.rest.note_use()
        with anyio.move_on_after(min(within, _LOGIN_WAIT) if self.needs_login else within):
            while not self.connection and self._failed == failed and not self._closed and self._retry_wait <= _MAX_RETRY_WAIT:
                await self._changed.wait()
        if connection := self.connection:
            return connection
        if self._closed:
            raise ServerError(f"The server {self.name} is closed.")
        if self.needs_login:
            raise LoginNeeded(self.problem)
        why = self.problem or f"The server {self.name} has not answered yet."
        soon = "a moment" if self._retry_wait <= _MAX_RETRY_WAIT else f"{self._retry_wait:.0f} s"
        verb = "start" if self.config.command else "reach"
        raise ServerError(f"{why} Overspill keeps trying to {verb} it; try again in {soon}.")

    async def request(self, method: str, params: Mapping[str, Any] | None = None, *, progress: Progress | None = None) -> Raw:
        connection = await self.wait_until_connected()
        try:
            return await connection.request(method, params, progress=progress)
        except Unheard:
            return await (await self.wait_until_connected()).request(method, params, progress=progress)
        except LoginNeeded as problem:
            self.log_once(str(problem))
            raise

    async def connect(self) -> ServerConnection:
        """Like `wait_until_connected`, but waits longer for a server that is starting than for one that will restart."""
        return await self.wait_until_connected(_FAILED_WAIT if self.problem else _STARTING_WAIT)

    async def find_handshake(self, within: float) -> Handshake:
        """Return the server's answer to the handshake: its last one if it is not running. Raises like `wait_until_connected`."""
        known = await self.recall()
        return known.handshake if known else (await self.wait_until_connected(within)).handshake

    async def has_capability(self, method: str) -> bool:
        handshake = await self.find_handshake(0 if self.problem else _STARTING_WAIT)
        return method.split("/")[0] in handshake.capabilities

    async def recall(self) -> Known | None:
        """Return what the server answered and listed last; None if it is connected or has failed."""
        return None if self.connection or self.problem else await self.lists.load()

    async def list_entries(self, method: str, key: str) -> list[Raw]:
        """Fetch a whole list and return the entries that clients can read. The log names the other entries.

        Raises ServerError if the server is too slow, MCPError if it refuses.
        """
        if not await self.has_capability(method):
            return []
        if await self.recall() and (known := self.lists.give(key)):
            return self.select_usable([known.entries], key)
        try:
            with anyio.fail_after(_LIST_SECONDS):
                pages = await list_pages(self.request, method, key, self.name)
            await self.lists.note(key, pages)
            return self.select_usable([page.get(key) for page in pages], key)
        except TimeoutError:
            problem = f"The server {self.name} did not answer {method} within {_LIST_SECONDS:g} s, so the list is without it."
            self.log(problem)
            raise ServerError(problem) from None
        except MCPError as refusal:
            if refusal.code != mcp_types.METHOD_NOT_FOUND:  # a server with resources may have no templates
                self.log_once(f"The server {self.name} did not list its {key}: {quote_line(refusal.message)}")
            raise

    def select_usable(self, pages: Iterable[object], key: str, taken: Iterable[str] = ()) -> list[Raw]:
        """Like `listings.select_usable`, but logs what is left out, and learns which arguments of tools go into headers."""
        usable, flaws = select_usable(pages, key, taken)
        if key == "tools" and (connection := self.connection):
            for tool in usable:
                connection.learn_headers(tool)
        new = [flaw for flaw in flaws if f"{key}: {flaw}" not in self._logged]
        if new and len(self._logged) < _MAX_LOGGED_ONCE:
            self._logged.update(f"{key}: {flaw}" for flaw in new)
            self.log(f"The server {self.name} lists {key} that cannot be used, so they are left out: {', '.join(new)}.")
        return usable

    def log_once(self, line: str) -> None:
        """Log a line unless it was logged before: a client may ask for the same list again and again."""
        if line not in self._logged and len(self._logged) < _MAX_LOGGED_ONCE:
            self._logged.add(line)
            self.log(line)

    async def list_tools(self) -> list[Raw]:
        connection = await self.wait_until_connected()
        if "tools" not in connection.handshake.capabilities:
            return []
        try:
            pages = await list_pages(self.request, "tools/list", "tools", self.name)
        except MCPError as refusal:
            why = quote_line(refusal.message).rstrip(".")
            raise ServerError(f"The server {self.name} refused to list its tools: {why}.") from None
        listed = self.select_usable([page.get("tools") for page in pages], "tools")
        return [tool for tool in listed if self.config.allows(tool["name"])]

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> Output:
        """Call a tool; the current job shows its progress. Raises MCPError if the server refuses, ServerError if it is gone."""
        job = current.get()

        async def show(progress: Raw) -> None:
            if job is not None:
                job.note_progress(format_progress(progress))

        result = await self.request("tools/call", {"name": name, "arguments": dict(args)}, progress=job and show)
        if result.get("resultType") == "input_required":
            raise ServerError(
                f"The tool {one_line(name)} of the server {self.name} asks for input from a person, and nobody can answer here."
            )
        return await to_output(await self.follow_task(result))

    async def follow_task(self, result: Raw, answer: Answer | None = None) -> Raw:
        """Return the result of a tool call, or of the task that the server made of it. Raises like `TaskFollower.follow`."""
        if is_task(result):
            if not isinstance(id := result.get("taskId"), str) or not id:
                raise ServerError(f"The server {self.name} started a task without an id, so its result is lost.")
            result = await TaskFollower(self.name, id, self.request, answer).follow()
        require_result(result, self.name)
        return result

    async def resume_task(self, id: str, answer: Answer | None) -> Output:
        return await to_output(await self.follow_task({"resultType": "task", "taskId": id}, answer))

    async def _run_once(self) -> anyio.Event:
        """Run until idleness stops the server. The event is set when it must start again. Raises if it ends in any other way."""
        self.starts += 1
        with anyio.CancelScope(deadline=anyio.current_time() + _START_SECONDS) as starting:
            async with self._connect(self._access) as connection:
                await self.lists.note_handshake(connection.handshake)
                connection.param_headers = self._param_headers  # outlives a connection
                if self._on_up is not None:
                    await self._on_up(connection)
                starting.deadline = float("inf")
                self._connection, self.problem, self.needs_login = connection, "", False
                self._announce_change()
                if wanted := await self.rest.begin_when_idle(connection):
                    self._connection = None
                    return wanted
                await connection.wait_until_idle()
                raise ServerError(connection.transport.problem)
        raise ServerError(f"The server {self.name} did not answer within {_START_SECONDS:g} s.")

    @property
    def connection(self) -> ServerConnection | None:
        return None if self._connection is None or self._connection.ended.is_set() else self._connection

    @property
    def _retry_wait(self) -> float:
        return self._next_start - anyio.current_time()

    def _announce_change(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


@asynccontextmanager
async def open_servers(
    configs: Iterable[ServerConfig],
    environ: Mapping[str, str],
    *,
    client: ClientIdentity | None = None,
    log: Log = lambda _: None,
) -> AsyncGenerator[dict[str, Server]]:
    """Start all servers together. The first request to each waits until it is up."""
    servers = {config.name: Server(ServerAccess(config, environ, client or ClientIdentity(), log=log)) for config in configs}
    async with open_group() as group:
        for server in servers.values():
            group.start_soon(server.run)
        yield servers
        group.cancel_scope.cancel()
