"""FastMCP servers: `mcp.add_middleware(OverspillMiddleware())`."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from overspill.gate.intent import LOOKING_FOR
from overspill.integrations.open_runs import OpenRuns
from overspill.integrations.options import GivenOptions, MissingFramework, Options
from overspill.integrations.sessions import Sessions
from overspill.session.opening import find_loop
from overspill.types import Output, Reply

try:
    from fastmcp.server.middleware.tool_injection import ToolInjectionMiddleware
    from fastmcp.tools.base import Tool, ToolResult
    from mcp_types import TextContent
except ImportError as error:
    raise MissingFramework("fastmcp", "fastmcp>=4.1") from error

from overspill.mcp.proxy.outputs import structure_reply, widen_schema

MAX_OPEN_CLIENTS = 200
"""How many sessions stay open. If a client has been silent for longest, its session is closed, and opened again when it calls."""
_WRAPS = "x-fastmcp-wrap-result"  # in the schema of a result other than an object: it is sent as {"result": …}
_UNKNOWN_CLIENT = (
    "overspill: requests of a client without a session or a login look the same as those of others, so their results pass "
    "unchanged. Give OverspillMiddleware `conversation=`."
)
_log = logging.getLogger("overspill")


class OverspillMiddleware(ToolInjectionMiddleware):
    """Each client has its own session: of the MCP session, of the user who is logged in, or of the process over stdio.

    `conversation` may find a better id in the middleware's context. `session`: a session or its name. `budget`: the window of
    the models that clients use.
    """

    def __init__(self, *, conversation: Callable[[Any], str | None] | None = None, **options: Unpack[GivenOptions]) -> None:
        self._sessions = Sessions(Options("fastmcp", **options, notice=False))
        self._conversation = conversation or (lambda context: None)
        self._runs = OpenRuns(self._sessions, MAX_OPEN_CLIENTS)
        super().__init__([_RetrievalTool(**tool) for tool in self._sessions.definitions])

    async def on_list_tools(self, context: Any, call_next: Any) -> Sequence[Tool]:
        return [_widen(tool).model_copy(update={"parameters": self._ask(tool)}) for tool in await call_next(context)]

    def _ask(self, tool: Tool) -> Any:
        return self._sessions.asking.widen(tool.name, tool.parameters)

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        async def tool(**given: Any) -> Output:
            return _to_output(await call_next(_with_arguments(context, given)))

        name, args = context.message.name, context.message.arguments or {}
        server = context.fastmcp_context
        client, asking = self._conversation(context) or server._session_scope_key(), self._sessions.asking
        if LOOKING_FOR in args and not asking.knows(name) and (known := await server.fastmcp.get_tool(name)) is not None:
            self._ask(known)  # the client has its list of tools from another process
        if client is None:
            _log.warning(_UNKNOWN_CLIENT)
            return await call_next(_with_arguments(context, asking.take_off(name, args)[0]))
        # In the older protocol, a connection lasts until its client leaves; in the newer one, for a single request.
        connection = None if server._is_modern_protocol() else server.session._connection.exit_stack
        run = await self._runs.find((find_loop(), client, connection), client, connection)
        reply = await run.call(name, args, tool)
        return await _to_result(reply, run.news, context)


class _RetrievalTool(Tool):
    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Answer a client that nothing identifies. Calls of other clients do not get here."""
        return ToolResult("This server stores nothing for clients that it cannot tell apart.", is_error=True)


def _with_arguments(context: Any, args: Mapping[str, Any]) -> Any:
    """Return the context with these arguments. If nothing changes, it is not copied, because that takes time."""
    if args == (context.message.arguments or {}):
        return context
    return context.copy(message=context.message.model_copy(update={"arguments": dict(args)}))


def _widen(tool: Tool) -> Tool:
    """Let a stored result match the output schema too, because clients refuse a result that does not."""
    schema = tool.output_schema
    if schema is None:
        return tool
    if schema.get(_WRAPS):
        inner = schema["properties"]["result"]
        if inner.get("type") == "string":
            return tool
        widened = {**schema, "properties": {**schema["properties"], "result": {"anyOf": [inner, {"type": "string"}]}}}
    else:
        widened = widen_schema({"outputSchema": schema}).get("outputSchema")
    return tool.model_copy(update={"output_schema": widened})


def _to_output(result: Any) -> Output:
    """Read a tool's result. Anything else, such as a task that the server started, passes unchanged."""
    if not isinstance(result, ToolResult):
        return Output([], original=(result,))
    return Output(list(result.content), is_error=result.is_error, original=(result,))


async def _to_result(reply: Reply, news: Callable[[], str], context: Any) -> Any:
    (result,) = reply.value if reply.passed else (None,)
    if reply.passed and not isinstance(result, ToolResult):  # it has no place for news, which can wait
        return result
    more = [TextContent(type="text", text=told)] if (told := news()) else []
    if result is not None:
        return result.model_copy(update={"content": [*result.content, *more]}) if more else result
    content = [TextContent(**block) if isinstance(block, dict) else block for block in reply.content]
    structured, meta = None, None
    if reply.kept is not None or reply.job is not None:
        tool = await context.fastmcp_context.fastmcp.get_tool(context.message.name)
        schema = tool and tool.output_schema
        if schema and schema.get(_WRAPS):
            structured, meta = {"result": reply.text}, {"fastmcp": {"wrap_result": True}}
        else:
            structured = structure_reply(schema, reply.text, reply.kept and reply.kept.handle)
    return ToolResult([*content, *more], structured_content=structured, meta=meta, is_error=reply.is_error)
