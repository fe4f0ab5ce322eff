"""The Claude Agent SDK: `ClaudeAgentOptions(**overspill_options(mcp_servers={…}))`.

Longer than other adapters, because results come in two ways: tools of servers in this process run through Overspill; results of
Claude Code's own tools and of other servers are replaced by a hook. Only hooks know whose call it is.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

from overspill.errors import BadRequest, require
from overspill.gate.collect import is_blocks, text_block
from overspill.hooks.shapes import HookEvent, Unusable, find_text
from overspill.integrations.open_runs import OpenRuns
from overspill.integrations.options import GivenOptions, MissingFramework, Options
from overspill.integrations.sessions import AgentRun, Sessions, refuse
from overspill.types import Output, Reply

try:
    from claude_agent_sdk import HookMatcher
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool
except ImportError as error:
    raise MissingFramework("claude_agent_sdk", "claude-agent-sdk>=0.2.182 with mcp>=2") from error


SERVER = "overspill"
MAX_OPEN_SESSIONS = 200
"""How many sessions stay open. The session that has been silent for longest is closed, and opened again when it calls."""
_MAX_UNANSWERED_CALLS = 10_000  # that Claude Code has announced and may never make
_CALL_ID = "claudecode/toolUseId"  # in the metadata of each call to a server in this process
_AMBIGUOUS = ""  # some providers give calls of two users the same id
_UNKNOWN_CALLER = "Claude Code did not say whose call this is, so nothing stored can be read."


def overspill_options(
    *,
    mcp_servers: Mapping[str, Any] | None = None,
    hooks: Mapping[Any, Sequence[HookMatcher]] | None = None,
    allowed_tools: Sequence[str] = (),
    **options: Unpack[GivenOptions],
) -> dict[str, Any]:
    """The arguments of `ClaudeAgentOptions` for an agent with these servers, hooks and tools. They serve all users: each session
    of Claude Code has its own session of Overspill.

    `session`: a session to share, or its name. `budget`: the model's window, which the SDK does not know.
    """
    require("mcp_servers", mcp_servers, (Mapping, type(None)), "a dictionary of servers by name")
    if SERVER in (mcp_servers or {}):
        raise BadRequest(f"The name {SERVER!r} is taken by the server with the retrieval tools. Give your server another name.")
    adapter = _Adapter(Sessions(Options("claude_agent_sdk", **options, notice=False, tool_prefix=name_prefix(SERVER))))
    servers = {name: adapter.wrap(name, each) for name, each in (mcp_servers or {}).items()}
    ours = adapter.make_hooks()
    return {
        "mcp_servers": {**servers, SERVER: adapter.server},
        "hooks": {**(hooks or {}), **{name: [*(hooks or {}).get(name, ()), ours[name]] for name in ours}},
        "allowed_tools": [*allowed_tools, f"mcp__{SERVER}"],
    }


class _Adapter:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._runs = OpenRuns(sessions, MAX_OPEN_SESSIONS)
        self._prompts: OrderedDict[str, str] = OrderedDict()
        self._calls: OrderedDict[str, str] = OrderedDict()
        self._served = [name_prefix(SERVER)]
        self._tools = [define_tool(each, sessions.options.tool_prefix) for each in sessions.definitions]
        server = Server(SERVER, on_list_tools=self._list, on_call_tool=self._answer)
        self.server = {"type": "sdk", "name": SERVER, "instance": server}

    def wrap(self, name: str, config: Any) -> Any:
        """Wrap a server in this process: its tools run through Overspill. A hook replaces the results of other servers."""
        if not isinstance(config, dict) or config.get("type") != "sdk":
            return config
        self._served.append(name_prefix(name))
        server = copy.copy(config["instance"])
        server._request_handlers = dict(server._request_handlers)
        for method, wrapped in (("tools/call", self._call), ("tools/list", self._list_without_schemas)):
            if (entry := server.get_request_handler(method)) is not None:
                server.add_request_handler(method, entry.params_type, partial(wrapped, entry.handler))
        return {**config, "instance": server}

    def make_hooks(self) -> dict[str, HookMatcher]:
        """Make the hooks. Each costs two messages, so a call has only one: before it, to say whose call it is, or after it."""
        served = "|".join(self._served)  # the names contain no characters with a meaning in a pattern
        return {
            "UserPromptSubmit": HookMatcher(hooks=[self.note_prompt]),
            "PreToolUse": HookMatcher(f"^(?:{served})", [self.note_call]),
            "PostToolUse": HookMatcher(f"^(?!{served})", [self.replace_result]),
            "Stop": HookMatcher(hooks=[self.end]),
            "StopFailure": HookMatcher(hooks=[self.end]),
        }

    async def note_prompt(self, event: Any, id: str | None, context: Any) -> dict[str, Any]:
        _remember(self._prompts, event["session_id"], event["prompt"], MAX_OPEN_SESSIONS)
        return {}

    async def note_call(self, event: Any, id: str | None, context: Any) -> dict[str, Any]:
        call, session = event["tool_use_id"], event["session_id"]
        owner = session if self._calls.get(call, session) == session else _AMBIGUOUS
        _remember(self._calls, call, owner, _MAX_UNANSWERED_CALLS)
        return {}

    async def replace_result(self, event: Any, id: str | None, context: Any) -> dict[str, Any]:
        """Return the answer of a hook: a new result if it is too large, and a list of slow tools that have finished."""
        session, answer = event["session_id"], {}
        run = await self._runs.find(session, session)
        if (read := read_own_result(event)) is not None:
            output, show = read

            async def tool(**args: Any) -> Output:
                return output

            # Without the arguments, because the tool has already run, and took a reference in them as text.
            said = partial(self._read_messages, session)
            reply = await run.call(event["tool_name"], {}, tool, id=event["tool_use_id"], messages=said)
            answer = {} if reply.passed else show(reply)
        if news := run.news():
            answer["additionalContext"] = news
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", **answer}} if answer else {}

    async def end(self, event: Any, id: str | None, context: Any) -> dict[str, Any]:
        session = event["session_id"]
        for call in [call for call, owner in self._calls.items() if owner == session]:
            del self._calls[call]
        self._prompts.pop(session, None)
        await self._runs.close(session)
        return {}

    async def _call(self, handler: Any, context: Any, params: CallToolRequestParams) -> Any:
        async def tool(**given: Any) -> Output:
            return read_result(await handler(context, params.model_copy(update={"arguments": given})))

        id, args = _find_call(params), params.arguments or {}
        if not (session := self._calls.get(id)):
            own, _ = self._sessions.asking.take_off(params.name, args)
            return await handler(context, params.model_copy(update={"arguments": dict(own)}) if args else params)
        try:
            run, said = await self._find_run(session, context), partial(self._read_messages, session)
            return write_result(await run.call(params.name, args, tool, id=id, messages=said), run.news)
        finally:
            self._forget(id)

    async def _answer(self, context: Any, params: CallToolRequestParams) -> CallToolResult:
        id = _find_call(params)
        if not (session := self._calls.get(id)):
            return CallToolResult.model_validate({"content": [text_block(_UNKNOWN_CALLER)], "isError": True})
        try:
            run, name = await self._find_run(session, context), self._sessions.options.tool_prefix + params.name
            return write_result(await run.call(name, params.arguments or {}, refuse, id=id), run.news)
        finally:
            self._forget(id)

    def _forget(self, id: str) -> None:
        """Forget a call, except if two users have had its id: that stays ambiguous, because one of the calls may still run."""
        if self._calls.get(id):
            del self._calls[id]

    async def _list_without_schemas(self, handler: Any, context: Any, params: Any) -> Any:
        """List tools without output schemas, because a stored result matches none, and a client would refuse it."""
        listed = await handler(context, params)
        ask = self._sessions.asking.widen
        shown = [{"output_schema": None, "input_schema": ask(each.name, each.input_schema)} for each in listed.tools]
        tools = [each.model_copy(update=update) for each, update in zip(listed.tools, shown, strict=True)]
        return listed.model_copy(update={"tools": tools})

    async def _list(self, context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=self._tools)

    async def _find_run(self, session: str, context: Any) -> AgentRun:
        """Find the run, and close it with the connection, which the SDK closes even after a failed query. Hooks do not say so."""
        return await self._runs.find(session, session, context.session._connection.exit_stack)

    def _read_messages(self, session: str) -> list[dict[str, Any]]:
        return [{"role": "user", "content": self._prompts.get(session, "")}]


def _remember(known: OrderedDict[str, str], key: str, value: str, limit: int) -> None:
    known[key] = value
    if len(known) > limit:
        known.popitem(last=False)


def _find_call(params: CallToolRequestParams) -> str:
    return str((params.meta or {}).get(_CALL_ID) or "")


def name_prefix(server: str) -> str:
    """Return what Claude Code puts before the names of a server's tools. It keeps ASCII letters, digits, _ and -, or writes _."""
    known = (each if each.isascii() and (each.isalnum() or each in "_-") else "_" for each in server)
    return f"mcp__{''.join(known)}__"


def define_tool(tool: dict[str, Any], prefix: str) -> Tool:
    """Define a retrieval tool without the prefix, which Claude Code adds. It is loaded even before the model searches."""
    name, always = tool["name"].removeprefix(prefix), {"anthropic/alwaysLoad": True}
    described = {"name": name, "description": tool["description"], "inputSchema": tool["parameters"], "_meta": always}
    return Tool.model_validate(described)


def read_own_result(event: Any) -> tuple[Output, Any] | None:
    """Return what a built-in tool or a server of another process returned, and how to replace it. Each built-in tool's result has
    a form of its own; if that is not known, Claude Code's result is left unchanged."""
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


def read_result(result: Any) -> Output:
    """Read what a server in this process returned."""
    if not isinstance(result, CallToolResult):  # a request for input, which the client answers
        return Output([], original=result)
    blocks = [each.model_dump(by_alias=True, exclude_none=True) for each in result.content]
    return Output(blocks, is_error=bool(result.is_error), original=result)


def write_result(reply: Reply, news: Callable[[], str]) -> Any:
    """Return the result, with a list of slow tools that have finished since."""
    passed = reply.value if reply.passed and reply.original is not None else None
    if passed is not None and not isinstance(passed, CallToolResult):  # it has no place for the list, which can wait
        return passed
    more = [TextContent(type="text", text=told)] if (told := news()) else []
    if passed is not None:
        return passed.model_copy(update={"content": [*passed.content, *more]}) if more else passed
    return CallToolResult.model_validate({"content": [*reply.content, *more], "isError": reply.is_error})
