"""One client of the proxy: its servers, its session, and the messages between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial

import anyio
import anyio.abc
import anyio.to_thread
import mcp_types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY, event_from_wire

from overspill.calls.job import Requester, requester
from overspill.errors import LoginNeeded, ServerError, Unheard
from overspill.mcp.client.connection import ClientIdentity, Connect, Raw, ServerConnection, as_mapping
from overspill.mcp.client.handshake import Handshake
from overspill.mcp.client.peer import Peer, ServerAccess
from overspill.mcp.client.server import Server
from overspill.mcp.proxy.catalog import Catalog, ask_each
from overspill.mcp.proxy.client_request import NOT_WAITING, ClientRequest, PausedCalls
from overspill.mcp.proxy.large_answers import LargeAnswers
from overspill.mcp.proxy.login_links import LoginLinks
from overspill.mcp.proxy.options import ProxyOptions
from overspill.mcp.proxy.programs import ProgramCalls
from overspill.mcp.proxy.subscriptions import Subscriptions
from overspill.mcp.proxy.tasks import RoutedTasks, ServedTasks
from overspill.mcp.proxy.tool_calls import ToolCalls, list_for_programs
from overspill.mcp.proxy.tool_search import ServedToolSearch
from overspill.mcp.proxy.versions import adapt_result, ask_for_input, collect_answers, wants_input
from overspill.session.session import Session
from overspill.text import tokens
from overspill.text.lenient_json import dumps
from overspill.types import Output

_QUIET = 1.0  # seconds after the handshake


class ServedClient(Peer):
    """A client whose tasks run in `group`. It is the peer of its servers."""

    def __init__(
        self,
        options: ProxyOptions,
        session: Session,
        client: ClientIdentity,
        group: anyio.abc.TaskGroup,
        log: Callable[[str], None],
        connect: Connect,
        *,
        outlived_by_jobs: bool,
    ) -> None:
        self.options = options
        self.session = session
        self.client = client
        self.requester = Requester(dumps(client.info), comes_back=outlived_by_jobs)
        self.channel: ClientRequest | None = None
        """The client's handshake. Messages that belong to no request go over the handshake's connection."""
        folder, up = options.lists_folder, self._on_server_up
        self.servers = {
            name: Server(ServerAccess(each, options.environ, client, self, log), on_up=up, lists=folder, connect=connect)
            for name, each in options.servers.items()
        }
        programs = ProgramCalls(session.settings, client.info, log)
        self.catalog = Catalog(self.servers, session, options, programs)
        self.calls = ToolCalls(session, self.catalog, self.forward, programs, dry_run=options.dry_run, log=log)
        self.tool_search = ServedToolSearch(self.catalog, self.calls, session, client.info, dry_run=options.dry_run)
        self.answers = LargeAnswers(session, client, log, dry_run=options.dry_run)
        session.offer_to_programs(list_for_programs)
        self.paused_calls = PausedCalls(group)
        self.tasks = ServedTasks(session, self.paused_calls, self.calls.deliver)
        self.routed_tasks = RoutedTasks(self.calls.call_server, self.forward)
        self.subscriptions = Subscriptions(group, self.catalog, self._notify_client)
        self.level: str | None = None  # of the log, as a client of the older protocol set it
        self.greeted = anyio.Event()
        """Set once the client has finished its handshake. It gets no messages before that."""
        self._login_links = LoginLinks(options.environ, group, self.greeted)
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._flights: dict[str, list[ClientRequest]] = {name: [] for name in self.servers}
        self.left = anyio.Event()
        """Set when the client says that it is leaving, or its connection has ended."""
        self._connections = self._answering = 0
        self._has_called = self._offered = False
        self.last_used = anyio.current_time()
        for server in self.servers.values():
            group.start_soon(server.run)
        group.start_soon(self._load_vocabulary)

    @property
    def only_server(self) -> Server | None:
        return next(iter(self.servers.values())) if len(self.servers) == 1 else None

    @property
    def can_be_asked(self) -> bool:
        return any(name in self.client.capabilities for name in ("elicitation", "sampling", "roots"))

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered, or a paused call waits for the client."""
        return bool(self._answering or self.paused_calls.has_waiting or any(self._flights.values()))

    @property
    def silent_for(self) -> float:
        """Seconds since its last request was answered; 0 while one is being answered or paused."""
        return 0.0 if self._answering or self.paused_calls.has_waiting else anyio.current_time() - self.last_used

    @contextmanager
    def answering(self) -> Generator[None]:
        self._answering += 1
        before = requester.set(self.requester)
        try:
            yield
        finally:
            requester.reset(before)
            self._answering -= 1
            self.last_used = anyio.current_time()

    def note_call(self, request: ClientRequest) -> None:
        """A client that calls a second tool has shown that it stays after the first answer. A client that knows tasks says so.
        Other requests prove nothing: the Python SDK lists the tools after a call, and its client may then leave."""
        if "requestState" not in request.params:
            self.requester.comes_back |= self._has_called or request.knows_tasks
            self._has_called = True

    @contextmanager
    def connected(self) -> Generator[None]:
        """Use this while a request or a stream of a client of the older protocol is open. A client with neither is away."""
        self._connections += 1
        self.requester.is_away = False
        try:
            yield
        finally:
            self._connections -= 1
            self.requester.is_away = not self._connections

    async def wait_until_gone(self, max_silence: float) -> None:
        """Wait until it has left, or is silent for too long: a client without a connection does not say that it is leaving."""
        while not self.left.is_set() and self.silent_for < max_silence:
            with anyio.move_on_after(max_silence - self.silent_for):
                await self.left.wait()
        self.requester.is_away = True  # servers can ask it nothing more; its jobs keep running
        self.channel = None

    async def find_handshakes(self, within: float) -> dict[str, Handshake | ServerError]:
        """Each server's handshake, or the error that explains why it has not connected yet."""

        async def one(server: Server) -> Handshake | ServerError:
            try:
                return await server.find_handshake(within)
            except ServerError as problem:
                if isinstance(problem, LoginNeeded):
                    self._login_links.offer(server, self.channel)
                self.subscriptions.missed.add(server.name)
                return problem

        found = await ask_each(self.servers.values(), one)
        return {name: found[name] for name in self.servers}

    async def forward(self, request: ClientRequest, server: Server, params: Raw) -> Raw:
        try:
            return await self._forward(request, server, params)
        except Unheard:  # it never arrived, so repeating it is safe
            return await self._forward(request, server, params)
        except LoginNeeded as problem:
            server.log_once(str(problem))
            self._login_links.offer(server, self.channel)
            raise

    async def _forward(self, request: ClientRequest, server: Server, params: Raw) -> Raw:
        method, flights = request.method, self._flights[server.name]
        params = request.params if method == "tasks/result" else params  # `params` names the task, but not its tool
        connection = await server.connect()
        if request.log_level is not None and connection.level != request.log_level:
            with suppress(MCPError):  # the request must not fail if the server refuses the level
                await self.set_level(request.log_level, connection)
        if self.level is not None and connection.handshake.is_modern and not request.is_modern:
            params = {**params, "_meta": {mcp_types.LOG_LEVEL_META_KEY: self.level, **as_mapping(params.get("_meta"))}}

        async def ask(given: Raw) -> Raw:
            shows = "progressToken" in request.meta or method == "tools/call"
            return await connection.request(method, given, progress=request.progress if shows else None)

        flights.append(request)
        try:
            result = await ask(params)
            answer = partial(self._ask_client, server.name, request)
            if wants_input(result) and (not request.is_modern or (request.is_task and request.can_ask)):
                result = await ask_for_input(result, params, ask=answer, again=ask)
            result = await self.answers.admit_questions(server.name, result)
            if method == "tools/call":
                taken = self.routed_tasks.take(request, server, str(params.get("name")), result)
                result = taken or await server.follow_task(result, partial(collect_answers, ask=answer))
        finally:
            flights.remove(request)
        return adapt_result(result, method, modern=request.is_modern, handshake=connection.handshake)

    async def resume_tasks(self) -> None:
        """Follow the tasks that an earlier proxy with the same servers left."""

        def resume(name: str, task: str) -> Callable[[], Awaitable[Output]] | None:
            answer = partial(collect_answers, ask=partial(self._ask_client, name, None))
            return partial(self.servers[name].resume_task, task, answer) if name in self.servers else None

        with self.answering():
            await self.session.jobs.resume_tasks(resume)

    async def set_level(self, level: str, connection: ServerConnection) -> None:
        """Set the log level of an older server. A newer one gets it with each request."""
        if not connection.handshake.is_modern and "logging" in connection.handshake.capabilities:
            await connection.request("logging/setLevel", {"level": level})
            connection.level = level

    async def _load_vocabulary(self) -> None:
        """Do this once the client has its list of tools, so that neither its start nor its first large result waits for it."""
        await self.greeted.wait()
        await anyio.sleep(_QUIET)
        await anyio.to_thread.run_sync(tokens.load, self.session.settings.model)

    async def announce_tools(self) -> None:
        """Announce, once, that there are now tools to read stored outputs."""
        if not self._offered and self.catalog.list_own():
            self._offered = True
            if not self.options.tools_always:
                await self._notify_client("notifications/tools/list_changed", {})

    async def on_request(self, server: str, method: str, params: Raw) -> Raw:
        if method == "ping":
            return {}
        # The server most likely asks because of the newest request.
        newest = next((request for request in reversed(self._flights[server]) if request.can_ask), None)
        return await self._ask_client(server, newest, method, params)

    async def _ask_client(self, server: str, request: ClientRequest | None, method: str, params: Raw) -> Raw:
        """Ask the client within a request, if it can answer within that request; otherwise on its channel."""
        params = await self.answers.admit_request(server, method, params)
        if self.channel is None and (kind := method.split("/")[0]) not in self.client.capabilities:
            raise MCPError(mcp_types.INVALID_REQUEST, f"The client does not declare {kind}, so it cannot be asked.")
        if request is not None and request.can_ask:
            return await request.ask(method, params)
        if self.channel is not None:
            await self.greeted.wait()
            with request.job.pause_clocks() if request and request.job else nullcontext():
                return await self.channel.connection.outbound.send_raw_request(method, self.channel.make_sendable(params))
        raise MCPError(mcp_types.INVALID_REQUEST, NOT_WAITING)

    async def on_notification(self, server: str, method: str, params: Raw) -> None:
        if method == "notifications/subscriptions/acknowledged":
            return
        if method.split("/")[:2] == ["notifications", "tasks"]:
            if (task := self.routed_tasks.rename(server, params) if method == "notifications/tasks/status" else None) is None:
                self.servers[server].log_once(f"The server {server} sends {method}, which Overspill does not pass on.")
                return
            params = task
        if (admitted := await self.answers.admit(server, method, params)) is None:
            return
        self.catalog.note_change(server, method)
        request = next((each for each in reversed(self._flights[server]) if not each.is_answered), None)
        if request is None or event_from_wire(method, admitted) is not None:
            await self._notify_client(method, admitted)
        elif method != "notifications/message" or not request.is_modern or request.log_level is not None:
            await request.notify(method, admitted or None)

    async def notify_servers(self, method: str, params: Raw) -> None:
        """Pass a notification on to the servers that are up. A server that starts later would have no use for it."""
        for connection in [each.connection for each in self.servers.values()]:
            if connection is not None and not connection.handshake.is_modern:
                await connection.notify(method, params or None)

    async def _notify_client(self, method: str, params: Raw) -> None:
        """Notify the client outside any request: on its channel, and on the streams it listens to."""
        meta = {key: value for key, value in as_mapping(params.get("_meta")).items() if key != SUBSCRIPTION_ID_META_KEY}
        params = {**{key: value for key, value in params.items() if key != "_meta"}, **({"_meta": meta} if meta else {})}
        if self.channel is not None:
            await self.greeted.wait()
            await self.channel.connection.outbound.notify(method, self.channel.make_sendable(params) or None)
        if (event := event_from_wire(method, params)) is not None:
            await self._bus.publish(event)

    async def _on_server_up(self, connection: ServerConnection) -> None:
        """Repeat to a restarted server what it knew about the client, and notify the client of what may have changed."""
        if self.level is not None:
            with suppress(MCPError):
                await self.set_level(self.level, connection)
        await self.subscriptions.resume(self.servers[connection.config.name], connection)

    def needs(self, server: str) -> bool:
        """Whether the server is working on a request, or the client has subscribed to one of its resources."""
        return bool(self._flights[server]) or self.subscriptions.has_any(server)
