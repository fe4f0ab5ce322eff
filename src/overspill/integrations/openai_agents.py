"""The OpenAI Agents SDK: `agent = overspill_agent(agent)`."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, Unpack

from anyio import to_thread

from overspill.gate.collect import block_text, field
from overspill.integrations.options import GivenOptions, MissingFramework, Options
from overspill.integrations.searching import Searching
from overspill.integrations.sessions import AgentRun, Sessions
from overspill.text.arguments import read_arguments
from overspill.types import Output, Reply

try:
    from agents import Agent, AgentHooks, FunctionTool, ModelBehaviorError, default_tool_error_function
except ImportError as error:
    raise MissingFramework("openai_agents", "openai-agents>=0.24") from error

_STRUCTURED = ("text", "image", "file")


def overspill_agent(
    agent: Agent[Any],
    *,
    conversation: Callable[[Any], str] | None = None,
    tool_search: bool = False,
    **options: Unpack[GivenOptions],
) -> Agent[Any]:
    """The same agent, whose function tools and MCP servers go through Overspill, and with it the agents that it hands off to.

    It serves all users: each conversation has its own session, and so has each run without one. `conversation` finds the id in
    the context of a call; by default, it is the `group_id` of the `RunConfig`. `session`: a session to share, or its name.
    `tool_search`: models search for the agents' tools, if the setting `toolSearch` says so.
    """
    sessions = Sessions(Options("openai-agents", **options, notice=False, tool_search=tool_search))
    group = conversation or (lambda context: getattr(context.run_config, "group_id", None) or "")
    return _Adapter(sessions, group).wrap(agent)


class _Adapter:
    def __init__(self, sessions: Sessions, conversation: Callable[[Any], str]) -> None:
        self._sessions = sessions
        self._conversation = conversation
        self._runs: dict[int, AgentRun] = {}
        self._searches: dict[int, dict[int, Searching]] = {}
        self._wrapped: dict[int, Agent[Any]] = {}

    def wrap(self, agent: Agent[Any]) -> Agent[Any]:
        """Wrap an agent and those that it hands off to, each only once: agents may hand off to each other in a circle."""
        if id(agent) not in self._wrapped:
            answer = partial(self._answer, id(agent))
            own = [
                FunctionTool(tool["name"], tool["description"], tool["parameters"], answer, strict_json_schema=False)
                for tool in self._sessions.definitions
            ]
            tools = [*map(self._wrap_tool, agent.tools), *own]
            ours = self._wrapped[id(agent)] = replace(agent, tools=tools, hooks=_Hooks(agent.hooks, self.end))
            ours.get_mcp_tools = partial(self._list_mcp_tools, agent)
            ours.get_all_tools = partial(self._list_tools, id(agent), ours.get_all_tools)
            ours.handoffs = [self.wrap(each) if isinstance(each, Agent) else each for each in agent.handoffs]
        return self._wrapped[id(agent)]

    async def _list_mcp_tools(self, agent: Agent[Any], context: Any) -> list[Any]:
        """Wrap the tools of the agent's servers. The SDK lists them in each turn, and makes them into function tools."""
        return [*map(self._wrap_tool, await agent.get_mcp_tools(context))]

    async def _list_tools(self, agent: int, list_all: Callable[[Any], Any], context: Any) -> list[Any]:
        """List the agent's tools, without those that the model searches for, or without the search if it is not used."""
        search, tools = self._find_search(agent, context), await list_all(context)
        return search.choose(tools, attrgetter("params_json_schema"), may_hide=_may_hide)

    def _find_search(self, agent: int, context: Any) -> Searching:
        """Find the search of one agent in one run, because agents and users have different tools."""
        key = id(context.usage)
        if key not in self._searches:
            self._searches[key] = {}
            weakref.finalize(context.usage, self._searches.pop, key, None)
        return self._searches[key].setdefault(agent, self._sessions.searches.begin())

    def _wrap_tool(self, tool: Any) -> Any:
        if not isinstance(tool, FunctionTool):
            return tool

        async def invoke(context: Any, arguments: str) -> Any:
            args = read_arguments(arguments)
            if not isinstance(args, dict):  # the SDK says what is wrong with the arguments
                return await tool.on_invoke_tool(context, arguments)

            async def call(**given: Any) -> Output:
                return _to_output(await tool.on_invoke_tool(context, arguments if given == args else json.dumps(given)))

            run = self._find_run(context)
            reply = await run.call(tool.name, args, call, id=context.tool_call_id, messages=context.turn_input)
            return _to_result(reply, run.news())

        schema = self._sessions.asking.widen(tool.name, tool.params_json_schema, strict=tool.strict_json_schema)
        return replace(tool, on_invoke_tool=invoke, params_json_schema=schema)

    async def _answer(self, agent: int, context: Any, arguments: str) -> Any:
        run, args, search = self._find_run(context), read_arguments(arguments), self._find_search(agent, context)
        found = search.read(context.tool_name, args)
        if isinstance(found, str):
            return found
        if found is not None:
            return await _call_found(search, context, *found)
        given = args if isinstance(args, dict) else {}
        reply = await run.call(context.tool_name, given, str, id=context.tool_call_id, search=search)
        return _to_result(reply, run.news())

    def _find_run(self, context: Any) -> AgentRun:
        """Find the run of a call, by the object that counts usage: all calls of a run share it."""
        key = id(context.usage)
        if key not in self._runs:
            self._runs[key] = self._sessions.begin_run(self._conversation(context))
            weakref.finalize(context.usage, self._runs.pop, key, None)  # for runs that fail
        return self._runs[key]

    async def end(self, context: Any) -> None:
        if (run := self._runs.get(id(context.usage))) is not None:
            await run.close()


class _Hooks(AgentHooks[Any]):
    """Calls the agent's own hooks, and ends the run."""

    def __init__(self, own: Any, end: Callable[[Any], Any]) -> None:
        own = own or AgentHooks()
        self.on_start, self.on_handoff = own.on_start, own.on_handoff
        self.on_tool_start, self.on_tool_end = own.on_tool_start, own.on_tool_end
        self.on_llm_start, self.on_llm_end = own.on_llm_start, own.on_llm_end
        self._own = own
        self._end = end

    async def on_end(self, context: Any, agent: Any, output: Any) -> None:
        await self._own.on_end(context, agent, output)
        await self._end(context)


async def _call_found(search: Searching, context: Any, name: str, args: dict[str, Any]) -> Any:
    try:
        result = await search.find(name).on_invoke_tool(context, json.dumps(args))
    except ModelBehaviorError as problem:  # the SDK raises it if arguments do not fit
        if not (why := await to_thread.run_sync(search.explain, name, args, problem)):
            raise
        return why
    if result != default_tool_error_function(context, ValueError()):
        return result
    return await to_thread.run_sync(search.explain, name, args, result) or result


def _may_hide(tool: Any) -> bool:
    """Whether a tool may be searched for. The SDK checks approvals and guardrails only in calls that the model makes itself."""
    guards = isinstance(tool, FunctionTool) and (tool.needs_approval, tool.tool_input_guardrails, tool.tool_output_guardrails)
    return bool(guards) and not any(guards)


def _to_output(result: Any) -> Output:
    items = result if isinstance(result, list) and result else [result]
    if not all(field(item, "type") in _STRUCTURED for item in items):
        items = [{"type": "text", "text": str(result)}]
    return Output(list(items), original=(result,))


def _to_result(reply: Reply, news: str) -> Any:
    is_text = all(block_text(block) is not None for block in reply.content)
    is_theirs = reply.passed and not isinstance(reply.value, str)  # the search for tools answers with a string
    result = reply.value[0] if is_theirs else reply.text if is_text else reply.content
    if not news:
        return result
    return [*(reply.content if reply.content else [{"type": "text", "text": str(result)}]), {"type": "text", "text": news}]
