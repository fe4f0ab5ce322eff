"""The Claude Agent SDK: `ClaudeAgentOptions(**overspill_options(mcp_servers={…}))`."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakSet

from overspill.errors import BadRequest, require
from overspill.gate.collect import is_blocks, text_block
from overspill.hooks.shapes import HookEvent, Unusable, find_text
from overspill.integrations.missing import MissingFramework
from overspill.integrations.options import GivenBudget, GivenSession, Options
from overspill.integrations.sessions import Run, Sessions
from overspill.settings import Settings
from overspill.types import Output, Reply

try:
    from claude_agent_sdk import HookMatcher
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, Tool
except ImportError as error:
    raise MissingFramework("claude_agent_sdk", "claude-agent-sdk>=0.2.182 with mcp>=2") from error

SERVER = "overspill"
MAX_OPEN_SESSIONS = 200
"""Sessions that stay open. The one that has been silent for longest is closed, and opened again when it calls."""
_MAX_UNANSWERED_CALLS = 10_000  # of which Claude Code has told us, and which it may have refused since
_CALL_ID = "claudecode/toolUseId"  # in the metadata of each call to a server in this process
_AMBIGUOUS = ""  # some providers give calls of two users the same id
_NOBODY = "Claude Code did not say whose call this is, so nothing stored can be read."


def overspill_options(
    *,
    mcp_servers: Mapping[str, Any] | None = None,
    hooks: Mapping[Any, Sequence[HookMatcher]] | None = None,
    allowed_tools: Sequence[str] = (),
    settings: Settings | None = None,
    session: GivenSession | None = None,
    budget: GivenBudget | None = None,
) -> dict[str, Any]:
    """The arguments of `ClaudeAgentOptions` for an agent with these servers, hooks and tools. They serve all users: each session
    of Claude Code has its own session of Overspill.

    `session`: one to share, or its name. `budget`: the model's window, which the SDK does not know.
    """
    require("mcp_servers", mcp_servers, (Mapping, type(None)), "a dictionary of servers by name")
    if SERVER in (mcp_servers or {}):
        raise BadRequest(f"The name {SERVER!r} is taken by the server with the retrieval tools. Give your server another name.")
    options = Options("claude_agent_sdk", settings, session, budget, notice=False, tool_prefix=f"mcp__{SERVER}__")
    adapter = _Adapter(Sessions(options))
    ours = {
        "UserPromptSubmit": adapter.note_prompt,
        "PreToolUse": adapter.note_call,
        "PostToolUse": adapter.replace_result,
        "PostToolUseFailure": adapter.forget_call,
        "Stop": adapter.end,
        "StopFailure": adapter.end,
    }
    return {
        "mcp_servers": {**{name: adapter.wrap(name, each) for name, each in (mcp_servers or {}).items()}, SERVER: adapter.server},
        "hooks": {**(hooks or {}), **{name: [*(hooks or {}).get(name, ()), HookMatcher(hooks=[ours[name]])] for name in ours}},
        "allowed_tools": [*allowed_tools, f"mcp__{SERVER}"],
    }


class _Conversation:
    """A session of Claude Code, while it works on a prompt."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.prompt = ""
        self.connections: WeakSet[Any] = WeakSet()

    def read_messages(self) -> list[dict[str, Any]]:
        return [{"role": "user", "content": self.prompt}]


class _Adapter:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._open: OrderedDict[str, _Conversation] = OrderedDict()
        self._calls: OrderedDict[str, str] = OrderedDict()
        self._served = {SERVER}
        self._tools = [_define(each, sessions.options.tool_prefix) for each in sessions.define_tools()]
        server = Server(SERVER, on_list_tools=self._list, on_call_tool=self._answer)
        self.server = {"type": "sdk", "name": SERVER, "instance": server}

    def wrap(self, name: str, config: Any) -> Any:
        """A server in this process runs its tools through Overspill. Results of others are replaced by a hook."""
        if not isinstance(config, dict) or config.get("type") != "sdk":
            return config
        self._served.add(name)
        server = copy.copy(config["instance"])
        server._request_handlers = dict(server._request_handlers)
        for method, wrapped in (("tools/call", self._call), ("tools/list", self._list_without_schemas)):
            if (entry := server.get_request_handler(method)) is not None:
                server.add_request_handler(method, entry.params_type, partial(wrapped, entry.handler))
        return {**config, "instance": server}

    async def note_prompt(self, event: Any, id: str | None, context: Any) -> dict[str, Any]:
        (await self._find(event["session_id"])).prompt = event["prompt"]
        return {}

    async def note_call(self, event: Any, id: str | None, context: Any) -> dict[str, Any]:
        call, session = event["tool_use_id"], event["session_id"]
        self._calls[call] = session if self._calls.get(call, session) == session else _AMBIGUOUS
        if len(self._calls) > _MAX_UNANSWERED_CALLS:
            self._calls.popitem(last=False)
        return {}

    async def replace_result(self, event: Any, id: str | None, context: Any) -> dict[str, Any]:
        """Also tells the model which slow tools have finished, since nothing else reaches it between two requests."""
        self._forget(event)
        found, answer = await self._find(event["session_id"]), {}
        is_served = any(event["tool_name"].startswith(f"mcp__{name}__") for name in self._served)
        if not is_served and (read := _read_result(event)) is not None:
            output, show = read

            async def tool(**args: Any) -> Output:
                return output

            # Without the arguments: the tool has run, and a reference in them was text to it.
            reply = await found.run.call(event["tool_name"], {}, tool, id=event["tool_use_id"], messages=found.read_messages)
            answer = {} if reply.passed else show(reply)
        if news := found.run.news():
            answer["additionalContext"] = news
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", **answer}} if answer else {}

    async def forget_call(self, event: Any, id: str | None, context: Any) -> dict[str, Any]:
        self._forget(event)
        return {}

    async def end(self, event: Any, id: str | None, context: Any) -> dict[str, Any]:
        for call in [call for call, session in self._calls.items() if session == event["session_id"]]:
            del self._calls[call]
        await self._close(event["session_id"])
        return {}

    def _forget(self, event: Any) -> None:
        """An id that two users had stays ambiguous: one of the calls may still run."""
        if self._calls.get(event["tool_use_id"]):
            del self._calls[event["tool_use_id"]]

    async def _call(self, handler: Any, context: Any, params: CallToolRequestParams) -> Any:
        found = await self._find_by_call(context, params)
        if found is None:
            return await handler(context, params)

        async def tool(**given: Any) -> Output:
            result = await handler(context, params.model_copy(update={"arguments": given}))
            if not isinstance(result, CallToolResult):  # it asks for more, and the client answers it
                return Output([], original=result)
            blocks = [each.model_dump(by_alias=True, exclude_none=True) for each in result.content]
            return Output(blocks, is_error=bool(result.is_error), original=result)

        args, said = params.arguments or {}, found.read_messages
        return _to_result(await found.run.call(params.name, args, tool, id=_find_call(params), messages=said))

    async def _list_without_schemas(self, handler: Any, context: Any, params: Any) -> Any:
        """A client refuses a result that does not match the output schema, and a stored result has another form."""
        listed = await handler(context, params)
        ask = self._sessions.asking.widen
        shown = [{"output_schema": None, "input_schema": ask(each.name, each.input_schema)} for each in listed.tools]
        tools = [each.model_copy(update=update) for each, update in zip(listed.tools, shown, strict=True)]
        return listed.model_copy(update={"tools": tools})

    async def _list(self, context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=self._tools)

    async def _answer(self, context: Any, params: CallToolRequestParams) -> CallToolResult:
        found = await self._find_by_call(context, params)
        if found is None:
            return CallToolResult.model_validate({"content": [text_block(_NOBODY)], "isError": True})
        return _to_result(await found.run.invoke(params.name, params.arguments or {}, id=_find_call(params)))

    async def _find_by_call(self, context: Any, params: CallToolRequestParams) -> _Conversation | None:
        """The SDK closes the connection to a server with the query, even if that fails or is cancelled. Hooks do not say so."""
        session = self._calls.get(_find_call(params))
        if not session:
            return None
        found, connection = await self._find(session), context.session._connection
        if connection not in found.connections:
            found.connections.add(connection)
            connection.exit_stack.push_async_callback(self._close, session)
        return found

    async def _find(self, session: str) -> _Conversation:
        if session not in self._open:
            self._open[session] = _Conversation(self._sessions.begin_run(session))
        self._open.move_to_end(session)
        found = self._open[session]
        if len(self._open) > MAX_OPEN_SESSIONS:
            await self._close(next(iter(self._open)))
        return found

    async def _close(self, session: str) -> None:
        if (found := self._open.pop(session, None)) is not None:
            await found.run.close()


def _define(tool: dict[str, Any], prefix: str) -> Tool:
    """Claude Code puts the prefix before the name itself, and may load tools only when the model has searched for them."""
    name, always = tool["name"].removeprefix(prefix), {"anthropic/alwaysLoad": True}
    described = {"name": name, "description": tool["description"], "inputSchema": tool["parameters"], "_meta": always}
    return Tool.model_validate(described)


def _find_call(params: CallToolRequestParams) -> str:
    return str((params.meta or {}).get(_CALL_ID) or "")


def _read_result(event: Any) -> tuple[Output, Any] | None:
    """A built-in tool's result has its own form. If that is not known, Claude Code's result stays."""
    response = event["tool_response"]
    if isinstance(response, str) and response:
        return Output([text_block(response)]), lambda reply: {"updatedToolOutput": reply.text}
    if is_blocks(response):
        return Output(list(response)), lambda reply: {"updatedToolOutput": reply.content}
    try:
        found = find_text("claude-code", HookEvent("PostToolUse", event["tool_name"], response))
    except Unusable:
        return None
    return Output([text_block(found.text)]), lambda reply: found.answer(reply.text)["hookSpecificOutput"]


def _to_result(reply: Reply) -> Any:
    if reply.passed and reply.original is not None:
        return reply.value
    return CallToolResult.model_validate({"content": reply.content, "isError": reply.is_error})
