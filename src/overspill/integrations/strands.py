"""Strands Agents: `Agent(plugins=[OverspillPlugin()])`.

Longer than other adapters, because a tool of Strands is a generator. What it yields is passed on while it runs, until the call is
answered.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Unpack
from weakref import WeakKeyDictionary

from overspill.calls.tasks import TaskOwner
from overspill.gate.collect import text_block
from overspill.integrations.old_results import Called, Entry, Lines, OldResult, Said, compact
from overspill.integrations.options import AdapterOptions, MissingFramework, Options
from overspill.integrations.searching import Searching
from overspill.integrations.sessions import AgentRun, Sessions
from overspill.types import Output, Reply

try:
    from strands.hooks import AfterInvocationEvent, AfterModelCallEvent, BeforeInvocationEvent, BeforeToolCallEvent, HookOrder
    from strands.middleware.stages import InvokeModelStage
    from strands.plugins import Plugin
    from strands.types._events import ToolInterruptEvent, ToolResultEvent
    from strands.types.tools import AgentTool
except ModuleNotFoundError as error:
    raise MissingFramework("strands", "strands-agents>=1.62") from error


_END = object()
_MAX_SECS_TO_END = 1.0  # to wait for the end of a call that was abandoned
_BEFORE_OTHER_HOOKS = HookOrder.SDK_FIRST - 1


class OverspillPlugin(Plugin):
    """One plugin serves all agents. An agent uses the session of its session manager; without a manager, it has its own.

    `settings`: as for `Session`. `session`: a session to share, or its name. `budget`: the model's window,
    by default its `context_window_limit`. `compact`: once this share of it is full, old results are replaced by their names.
    `tool_search`: the model searches for an agent's tools, if the setting `toolSearch` says so.
    """

    name = "overspill"

    def __init__(self, **options: Unpack[AdapterOptions]) -> None:
        super().__init__()
        self._sessions = Sessions(Options("strands", **options))
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._searches: WeakKeyDictionary[Any, Searching] = WeakKeyDictionary()
        self._tools = [_RetrievalTool(tool) for tool in self._sessions.definitions]

    def init_agent(self, agent: Any) -> None:
        agent.add_middleware(InvokeModelStage.Input, self._begin_request)
        agent.add_hook(self._begin, BeforeInvocationEvent)
        agent.add_hook(self._unwrap, BeforeToolCallEvent, order=_BEFORE_OTHER_HOOKS)
        agent.add_hook(self._wrap_tool, BeforeToolCallEvent)
        agent.add_hook(self._end_request, AfterModelCallEvent)
        agent.add_hook(self._end, AfterInvocationEvent)

    def _begin(self, event: BeforeInvocationEvent) -> None:
        runs = event.invocation_state.setdefault("overspill_runs", WeakKeyDictionary())  # agents of a graph share the state
        # An agent remembers its conversation as long as it lives, but each blocking call has its own event loop. So the session
        # has a name by which the next call finds it.
        if (manager := getattr(event.agent, "_session_manager", None)) is not None:
            conversation = str(getattr(manager, "session_id", "") or "")
        else:
            conversation = self._names.setdefault(event.agent, uuid.uuid4().hex)
        if event.agent not in self._searches:
            self._searches[event.agent] = self._sessions.searches.begin()
        runs[event.agent] = self._sessions.begin_run(conversation)

    async def _end(self, event: AfterInvocationEvent) -> None:
        runs = event.invocation_state.get("overspill_runs", {})
        if (run := runs.pop(event.agent, None)) is not None:
            await run.close()
        if not runs:
            event.invocation_state.pop("overspill_runs", None)

    async def _begin_request(self, context: Any) -> Any:
        run = _find_run(context)
        if run is None:
            return context
        run.begin_request(getattr(context.model, "context_window_limit", None))
        asked = [self._ask(spec) for spec in context.tool_specs]
        dynamic = context.agent.tool_registry.dynamic_tools  # such as the tool for a structured output
        context = context.replace(
            tool_specs=self._searches[context.agent].choose(
                asked, lambda spec: spec["inputSchema"].get("json"), may_hide=lambda spec: spec["name"] not in dynamic
            )
        )
        lines = await compact(run, partial(read_conversation, context.messages))
        if lines:
            context = context.replace(messages=replace_results(context.messages, lines))
        notice = run.notice()
        if not notice or not context.messages or context.messages[-1]["role"] != "user":
            return context
        *earlier, last = context.messages
        told = {**last, "content": [*last["content"], {"text": notice}]}
        return context.replace(messages=[*earlier, told], dynamic_trailing_blocks=context.dynamic_trailing_blocks + 1)

    def _ask(self, spec: Any) -> Any:
        if (schema := spec["inputSchema"].get("json")) is None:
            return spec
        return {**spec, "inputSchema": {"json": self._sessions.asking.widen(spec["name"], schema)}}

    def _end_request(self, event: AfterModelCallEvent) -> None:
        run = _find_run(event)
        if run is not None and event.stop_response is not None:
            used = event.stop_response.message.get("metadata", {}).get("usage", {})
            run.settle(used.get("totalTokens"))

    def _unwrap(self, event: BeforeToolCallEvent) -> None:
        """Turn a call of `call_tool` into a call of the tool itself, also for the hooks that run after this one."""
        if _find_run(event) is None:
            return
        called, tools = event.tool_use, event.agent.tool_registry
        found = self._searches[event.agent].read(called["name"], called["input"])
        if isinstance(found, str):
            event.cancel_tool = found
            return
        if found is not None:
            event.tool_use = {**called, "name": found[0], "input": found[1]}
        name = event.tool_use["name"]
        if (
            isinstance(event.selected_tool, _RetrievalTool) and name not in self._sessions.searches.own_names
        ):  # also if a hook repeats the call
            event.selected_tool = tools.dynamic_tools.get(name) or tools.registry.get(name)

    def _wrap_tool(self, event: BeforeToolCallEvent) -> None:
        """Tools that your program calls itself, as `agent.tool.x()`, have no run and are left alone."""
        run = _find_run(event)
        if run is not None and event.selected_tool is not None:
            call = partial(run.call, messages=partial(read_said, event.agent), search=self._searches[event.agent])
            event.selected_tool = _WrappedTool(event.selected_tool, call)


def _find_run(event: Any) -> AgentRun | None:
    return event.invocation_state.get("overspill_runs", {}).get(event.agent)


class _Tool(AgentTool):
    tool_name: Any = ""
    tool_spec: Any = None
    tool_type: Any = "python"


class _RetrievalTool(_Tool):
    def __init__(self, definition: dict[str, Any]) -> None:
        super().__init__()
        self.tool_name = definition["name"]
        schema = {"json": definition["parameters"]}
        self.tool_spec = {"name": self.tool_name, "description": definition["description"], "inputSchema": schema}

    def stream(self, tool_use: Any, invocation_state: dict[str, Any], **kwargs: Any) -> Any:
        raise RuntimeError("Only the model can call this tool. Read stored outputs with `session.open` instead.")


class _WrappedTool(_Tool):
    def __init__(self, tool: AgentTool, call: Callable[..., Awaitable[Reply]]) -> None:
        super().__init__()
        self.tool_name, self.tool_spec, self.tool_type = tool.tool_name, tool.tool_spec, tool.tool_type
        self._tool, self._call = tool, call

    async def stream(self, tool_use: Any, invocation_state: dict[str, Any], **kwargs: Any) -> AsyncGenerator[Any, None]:
        """Pass on what the tool yields, up to its result. Stop when the call is answered."""
        events: asyncio.Queue[Any] = asyncio.Queue()
        answered: list[Reply] = []
        failed: list[Exception] = []

        async def tool(**args: Any) -> Output:
            last: Any = None
            async for event in self._tool.stream({**tool_use, "input": args}, invocation_state, **kwargs):
                if isinstance(event, ToolResultEvent):
                    return read_result(event)
                last = event
                if not answered:
                    events.put_nowait(event)
                if isinstance(event, ToolInterruptEvent):
                    return Output([text_block("The tool stopped to ask for something.")], is_error=True)
            failure = {"status": "error", "content": [{"text": f"Tool '{tool_use['name']}' did not return a result"}]}
            return read_result(ToolResultEvent(last or {"toolUseId": id, **failure}))

        async def call() -> None:
            try:
                answered.append(await self._call(tool_use["name"], tool_use["input"], tool, id=id))
            except Exception as error:  # the tool's: it is raised below
                failed.append(error)
            finally:
                events.put_nowait(_END)

        id, owner = str(tool_use["toolUseId"]), TaskOwner()
        await owner.open()
        try:
            owner.start(call)
            while (event := await events.get()) is not _END:
                yield event
            for error in failed:
                raise error
            yield write_result(answered[0], id)
        finally:
            await owner.cancel(_MAX_SECS_TO_END)


def read_conversation(messages: list[Any]) -> Iterator[Entry]:
    for index, message in enumerate(messages):
        for number, block in enumerate(message["content"]):
            if (call := block.get("toolUse")) is not None:
                yield Called(call["toolUseId"], call["name"], call["input"])
            elif (result := block.get("toolResult")) is None:
                yield Said(message["role"], block.get("text", ""))
            else:
                texts = [read_text(each) for each in result["content"]]
                text = "\n".join(each for each in texts if each is not None)
                is_error = result["status"] == "error"
                yield Said("user", text) if None in texts else OldResult((index, number), result["toolUseId"], text, is_error)


def replace_results(messages: list[Any], lines: Lines) -> list[Any]:
    def replace(block: Any, place: tuple[int, int]) -> Any:
        return {**block, "toolResult": {**block["toolResult"], "content": [{"text": lines[place]}]}} if place in lines else block

    return [
        {**message, "content": [replace(block, (index, number)) for number, block in enumerate(message["content"])]}
        for index, message in enumerate(messages)
    ]


def read_text(block: Any) -> str | None:
    if "text" in block:
        return block["text"]
    return json.dumps(block["json"], ensure_ascii=False, default=str) if "json" in block else None


def read_said(agent: Any) -> list[dict[str, Any]]:
    messages = agent.messages[-20:]
    texts = [[block["text"] for block in message["content"] if "text" in block] for message in messages]
    return [{"role": message["role"], "content": "\n".join(text)} for message, text in zip(messages, texts, strict=True) if text]


def read_result(event: ToolResultEvent) -> Output:
    """Read a tool's result. Blocks that are neither text nor JSON pass unchanged."""
    blocks: list[dict[str, Any]] = []
    for block in event.tool_result["content"]:
        text = read_text(block)
        blocks.append({"type": "strands", "block": block} if text is None else text_block(text))
    return Output(blocks, is_error=event.tool_result["status"] == "error", original=event)


def write_result(reply: Reply, id: str) -> ToolResultEvent:
    if reply.passed and isinstance(reply.value, ToolResultEvent):  # the search for tools returns a string
        return reply.value
    content = [block["block"] if block["type"] == "strands" else {"text": block["text"]} for block in reply.content]
    result = {"toolUseId": id, "status": "error" if reply.is_error else "success", "content": content}
    is_theirs = isinstance(reply.original, ToolResultEvent)
    return ToolResultEvent({**reply.original.tool_result, **result} if is_theirs else result)
