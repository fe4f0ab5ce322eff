"""LangChain and deepagents: `create_agent(…, middleware=[OverspillMiddleware()])`."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NotRequired, Unpack

from overspill.integrations.old_results import Called, Entry, Lines, OldResult, Said, compact, compact_sync
from overspill.integrations.open_runs import ResumableRuns
from overspill.integrations.options import AdapterOptions, MissingFramework, Options
from overspill.integrations.sessions import AgentRun, Sessions, refuse
from overspill.types import Output, Reply

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ToolCallRequest
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_core.tools import StructuredTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.channels.untracked_value import UntrackedValue
    from langgraph.prebuilt.tool_node import ToolInvocationError
    from langgraph.types import Command
except ModuleNotFoundError as error:
    raise MissingFramework("langchain", "langchain>=1.0") from error


_MAX_RESUMED_RUNS = 1_000  # that have not ended, or have failed


class OverspillState(AgentState):
    overspill_run: NotRequired[Annotated[Any, UntrackedValue, PrivateStateAttr]]  # pyright: ignore[reportInvalidTypeForm]
    """The run's hold on its session. LangGraph drops it with the run, however the run ends."""


class OverspillMiddleware(AgentMiddleware):
    """One object serves all users: each thread has its own session, and so has each run without a thread.

    `settings`: as for `Session`. `session`: a session to share, or its name. `budget`: the model's window,
    by default what LangChain knows of it. `compact`: once this share of it is full, old results are replaced by their names.
    `tool_search`: the model searches for the agent's tools, if the setting `toolSearch` says so.
    """

    state_schema = OverspillState

    def __init__(self, **options: Unpack[AdapterOptions]) -> None:
        super().__init__()
        self._sessions = Sessions(Options("langchain", **options), misfit=ToolInvocationError)
        self._runs = ResumableRuns(self._sessions, _MAX_RESUMED_RUNS)
        self.tools = [
            StructuredTool(name=tool["name"], description=tool["description"], args_schema=tool["parameters"], func=refuse)
            for tool in self._sessions.definitions
        ]
        self._does_ask = self._sessions.options.session_settings.intent == "ask"

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"overspill_run": self._runs.begin(_thread_of(runtime))}

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return self.before_agent(state, runtime)

    def after_agent(self, state: Any, runtime: Any) -> None:
        self._end(state, runtime).close_sync()

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        await self._end(state, runtime).close()

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> Any:
        run = self._find_run(request.state, request.runtime)
        settle = run.begin_request(_window_of(request.model))
        lines = compact_sync(run, partial(read_conversation, request.messages))
        response = handler(_complete(self._ask(request, run), lines, run.notice()))
        settle(_tokens_of(response))
        return response

    async def awrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[Any]]) -> Any:
        run = self._find_run(request.state, request.runtime)
        settle = run.begin_request(_window_of(request.model))
        lines = await compact(run, partial(read_conversation, request.messages))
        response = await handler(_complete(self._ask(request, run), lines, run.notice()))
        settle(_tokens_of(response))
        return response

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        def tool(**args: Any) -> Output:
            return read_result(handler(_with_arguments(request, args)), call["id"])

        given, run = request.tool_call, self._find_run(request.state, request.runtime)
        if isinstance(request := self._unwrap(request, run), ToolMessage):
            return request
        call, said = request.tool_call, partial(read_said, request.state["messages"])
        return write_result(run.call_sync(call["name"], call["args"], tool, id=call["id"] or "", messages=said), given)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]) -> Any:
        async def tool(**args: Any) -> Output:
            return read_result(await handler(_with_arguments(request, args)), call["id"])

        given, run = request.tool_call, self._find_run(request.state, request.runtime)
        if isinstance(request := self._unwrap(request, run), ToolMessage):
            return request
        call, said = request.tool_call, partial(read_said, request.state["messages"])
        return write_result(await run.call(call["name"], call["args"], tool, id=call["id"] or "", messages=said), given)

    def _ask(self, request: ModelRequest, run: AgentRun) -> ModelRequest:
        """Show the model schemas with `looking_for`, for tools that take it, and fewer tools, if it can search for them."""
        chosen = self._choose(request.tools, run)
        return request.override(tools=[*map(self._show, chosen)]) if self._does_ask or run.searching.is_on else request

    def _choose(self, tools: Sequence[Any], run: AgentRun) -> list[Any]:
        def read_schema(tool: Any) -> Any:
            return convert_to_openai_tool(self._show(tool))["function"]["parameters"]

        return run.searching.choose(tools, read_schema, may_hide=lambda tool: not isinstance(tool, dict))

    def _unwrap(self, request: ToolCallRequest, run: AgentRun) -> ToolCallRequest | ToolMessage:
        """Turn a call of `call_tool` into a call of the tool that it names, or into an answer if it cannot be read."""
        call, search = request.tool_call, run.searching
        if call["name"] == search.call_tool and not search.is_decided:  # another process made the request that was interrupted
            self._choose(request.runtime.tools, run)
        found = search.read(call["name"], call["args"])
        if isinstance(found, str):
            return ToolMessage(found, tool_call_id=call["id"], name=call["name"], status="error")
        if found is None:
            return request
        return request.override(tool_call={**call, "name": found[0], "args": found[1]}, tool=search.find(found[0]))

    def _show(self, tool: Any) -> Any:
        if not self._does_ask or isinstance(tool, dict):
            return tool
        shown = convert_to_openai_tool(tool)
        function = shown["function"]
        schema = self._sessions.asking.widen(function["name"], function["parameters"], strict=function.get("strict"))
        return tool if schema is function["parameters"] else {**shown, "function": {**function, "parameters": schema}}

    def _find_run(self, state: Any, runtime: Any) -> AgentRun:
        """Find the run, or begin one if LangGraph has resumed the conversation after an interrupt."""
        return state.get("overspill_run") or self._runs.resume(_thread_of(runtime))

    def _end(self, state: Any, runtime: Any) -> AgentRun:
        return state.get("overspill_run") or self._runs.end(_thread_of(runtime))


def _thread_of(runtime: Any) -> str:
    info = getattr(runtime, "execution_info", None)
    return str(getattr(info, "thread_id", None) or "")


def _window_of(model: Any) -> int | None:
    return (getattr(model, "profile", None) or {}).get("max_input_tokens")


def _tokens_of(response: Any) -> int | None:
    messages = [response] if isinstance(response, AIMessage) else getattr(response, "result", ())
    used = [message.usage_metadata for message in messages if isinstance(message, AIMessage) and message.usage_metadata]
    return used[-1]["total_tokens"] if used else None


def _complete(request: ModelRequest, lines: Lines, notice: str) -> ModelRequest:
    """Return the request with old results replaced, and with the notice at the end."""
    if not lines and not notice:
        return request
    return request.override(messages=[*replace_results(request.messages, lines), *([HumanMessage(notice)] if notice else [])])


def _with_arguments(request: ToolCallRequest, args: dict[str, Any]) -> ToolCallRequest:
    """Return the request with these arguments. If they are the same, it is not copied, which would take most of the time."""
    return request if args == request.tool_call["args"] else request.override(tool_call={**request.tool_call, "args": args})


def read_conversation(messages: Sequence[Any]) -> Iterator[Entry]:
    for place, message in enumerate(messages):
        blocks = [] if isinstance(message.content, str) else message.content
        if isinstance(message, ToolMessage) and all(isinstance(each, str) or each.get("type") == "text" for each in blocks):
            yield OldResult(place, message.tool_call_id, message.text, message.status == "error")
        else:
            yield Said("assistant" if isinstance(message, AIMessage) else "user", message.text)
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            yield Called(call["id"] or "", call["name"], call["args"])


def replace_results(messages: Sequence[Any], lines: Lines) -> list[Any]:
    return [each.model_copy(update={"content": lines[place]}) if place in lines else each for place, each in enumerate(messages)]


def read_said(messages: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"role": message.type, "content": message.content} for message in messages[-20:]]


def _find_message(result: Any, id: str | None) -> ToolMessage | None:
    """Find the answer in a tool's result. A tool may return it inside a command that also updates the state."""
    if isinstance(result, Command) and isinstance(result.update, dict):
        answers = [each for each in result.update.get("messages", ()) if isinstance(each, ToolMessage)]
        return next((each for each in answers if each.tool_call_id == id), None)
    return result if isinstance(result, ToolMessage) else None


def read_result(result: Any, id: str | None) -> Output:
    message = _find_message(result, id)
    content: Any = [] if message is None else message.content
    parts: Sequence[Any] = [content] if isinstance(content, str) else content
    blocks = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return Output(blocks, is_error=message is not None and message.status == "error", original=result)


def write_result(reply: Reply, call: Any) -> Any:
    """Make the message for a call. It has the name that the model used, because providers compare it."""
    if reply.passed and not isinstance(reply.value, str):  # the search for tools answers with a string
        is_named = not isinstance(reply.value, ToolMessage) or reply.value.name == call["name"]
        return reply.value if is_named else reply.value.model_copy(update={"name": call["name"]})
    is_text = all(isinstance(block, dict) and block.get("type") == "text" for block in reply.content)
    content: Any = reply.text if is_text else reply.content
    status = "error" if reply.is_error else "success"
    original = _find_message(reply.original, call["id"])
    if original is None:
        return ToolMessage(content, tool_call_id=call["id"], name=call["name"], status=status)
    answer = original.model_copy(update={"content": content, "status": status, "name": call["name"]})
    if not isinstance(reply.original, Command):
        return answer
    messages = [answer if each is original else each for each in reply.original.update["messages"]]
    return replace(reply.original, update={**reply.original.update, "messages": messages})
