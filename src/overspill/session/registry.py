"""The functions that a host registered as tools of a session."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import anyio.to_thread
from msgspec.structs import replace

from overspill.calls.invoke import Tool
from overspill.calls.service import CallService
from overspill.errors import BadRequest, require
from overspill.gate.intent import Messages, remember_said
from overspill.programs.tools import ListTools, ProgramTool
from overspill.retrieval.definitions import TOOLS, Definition, Format, define_offered_tools, offered_tools, render_definition
from overspill.session.opening import check_format
from overspill.session.parts import SessionParts
from overspill.settings import Settings
from overspill.task_queue.remote import RemoteTools
from overspill.types import Output, Reply, ToolCall
from overspill.wording import names, replies

if TYPE_CHECKING:
    from overspill.tool_search.offered import HostToolSearch

P = ParamSpec("P")


class ToolRegistry:
    """`surface`: the names of the retrieval tools on offer, for the error about an unknown tool."""

    def __init__(self, surface: Sequence[str]) -> None:
        self._tools: dict[str, Tool] = {}
        self._surface = surface
        self.remote: RemoteTools | None = None
        """The tools of workers, if the session has a queue."""
        self._others: list[ListTools] = []

    def register(
        self, function: Callable[P, Any], call: Callable[[str, dict[str, Any]], Awaitable[str]]
    ) -> Callable[P, Awaitable[str]]:
        """Returns a function whose calls go through `call`, with all arguments by name."""
        name = getattr(function, "__name__", type(function).__name__)
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            raise BadRequest(f"{name} cannot be a tool: it is not a function whose arguments have names.") from None
        if name in TOOLS:
            raise BadRequest(f"{name} cannot be a tool, because Overspill has a tool of that name. Rename your function.")
        if any(each.kind in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL) for each in signature.parameters.values()):
            raise BadRequest(f"{name} cannot be a tool: models pass arguments by name, and {signature} has some without a name.")
        self._tools[name] = function

        @wraps(function)
        async def call_through_gate(*args: P.args, **kwargs: P.kwargs) -> str:
            named: dict[str, Any] = {}
            for key, value in signature.bind(*args, **kwargs).arguments.items():
                named |= value if signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD else {key: value}
            return await call(name, named)

        return call_through_gate

    def attach(self, parts: SessionParts) -> None:
        """Attach the tools to a session that has begun."""
        self.remote, parts.programs.list_tools = parts.remote, self.list_for_programs

    def offer_to_programs(self, list_tools: ListTools) -> None:
        """Let programs call these tools too, if the settings `programTools` and `trustReadOnly` allow it."""
        self._others.append(list_tools)

    async def list_for_programs(self) -> list[ProgramTool]:
        """The registered functions, and the other tools of the host."""
        own = [ProgramTool(name, "", None, tool) for name, tool in self._tools.items()]
        return [*own, *[tool for list_tools in self._others for tool in await list_tools()]]

    def find(self, name: str, tool: Tool | None = None) -> Tool:
        """The given tool, or else the one registered under the name."""
        if tool is None:
            if name not in self._tools and self.remote is not None:
                return self.remote.find(name)
            if name not in self._tools:
                raise BadRequest(replies.unknown_tool(name, [*self._tools, *self._surface]))
            return self._tools[name]
        if not callable(tool):
            raise BadRequest(f"The tool {name} must be callable, but is of type {type(tool).__name__}.")
        return tool


class OfferedTools:
    def __init__(self, settings: Settings, prefix: str) -> None:
        require("tool_prefix", prefix, str, "a string")
        self._settings = settings
        self.prefix = prefix
        self._is_offered = False
        self._search: HostToolSearch | None = None

    @property
    def names(self) -> list[str]:
        return [self.prefix + name for name in offered_tools(self._settings)]

    def owns(self, name: object) -> bool:
        is_reading = isinstance(name, str) and name.startswith(self.prefix) and name[len(self.prefix) :] in TOOLS
        return is_reading or self.searches(name)

    def searches(self, name: object) -> bool:
        return any(name == self.prefix + tool.name for tool in self._searching)

    def define(self, format: Format) -> list[dict[str, Any]]:
        check_format(format)
        self._is_offered = True
        search = [render_definition(tool, format, self.prefix) for tool in self._searching]
        return [*search, *define_offered_tools(self._settings, format, self.prefix)]

    def search_for(self, register: Callable[[Any], object], tools: Sequence[Any]) -> list[Any]:
        """Have the model search for these functions or definitions, if the setting `toolSearch` says so. Returns those to offer
        directly, beside `tools()`, which then also has `find_tools`, `describe_tools` and `call_tool`."""
        require("tools", tools, Sequence, "a list of functions or definitions")
        if self._is_offered or self._search is not None:
            raise BadRequest("The tools of a conversation do not change. Call tool_search once, before tools().")
        from overspill.tool_search.offered import HostToolSearch  # noqa: PLC0415  # takes long to import, and few need it

        for tool in filter(callable, tools):
            register(tool)
        self._search = HostToolSearch(tools, self._settings, self.prefix, self.names)
        return self._search.direct

    @property
    def _searching(self) -> Iterable[Definition]:
        return self._search.definitions if self._search is not None else ()

    async def answer_search(self, calls: CallService, call: ToolCall, answer: Callable[[ToolCall], Awaitable[Reply]]) -> Reply:
        """Answer a call of one of the search's three tools. `answer` makes the call that `call_tool` asks for."""
        search, own = self._search, call.name.removeprefix(self.prefix)
        assert search is not None  # only a call of its tools leads here
        if own != "call_tool":

            async def run(**args: Any) -> Output:
                return await anyio.to_thread.run_sync(search.answer, own, args)

            return await calls.call(replace(call, name=own), run, background=False)
        try:
            name, args = await anyio.to_thread.run_sync(search.read, call.args)
        except BadRequest as problem:
            return calls.refuse(call, problem)
        reply = await answer(replace(call, name=name, args=args))
        return await anyio.to_thread.run_sync(search.complete, reply, name, args) if reply.is_error else reply

    async def run(self, calling: Awaitable[Reply], owner: object, messages: Messages) -> Reply:
        """Make a call. Its reply uses the session's tool names, and shows passages that match the messages."""
        if not messages and names.prefix.get() == self.prefix:
            return await calling
        with self.naming(), remember_said(owner, messages):
            return await calling

    def naming(self) -> AbstractContextManager[None]:
        return names.prefixed(self.prefix)
