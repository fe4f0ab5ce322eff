"""agno: `Agent(…, **overspill(tools=[…]))`, and the same for a `Team`."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import asyncio
import inspect
import json
import weakref
from collections.abc import Callable, Sequence
from functools import partial, wraps
from operator import attrgetter
from typing import Any, TypeAlias, Unpack

from overspill.integrations.functions import show_reply
from overspill.integrations.options import GivenOptions, MissingFramework, Options
from overspill.integrations.sessions import AgentRun, Sessions, refuse
from overspill.session.opening import find_loop
from overspill.types import Output, Reply

try:
    from agno.tools import Toolkit
    from agno.tools.function import Function, FunctionCall, ToolResult, entrypoint_accepts_media
except ModuleNotFoundError as error:
    raise MissingFramework("agno", "agno>=3.1") from error


_OF_OWN_CALLS = "requires_confirmation requires_user_input external_execution approval_type stop_after_tool_call show_result"


def overspill(
    *,
    tools: Sequence[Any] = (),
    tool_hooks: Sequence[Callable[..., Any]] = (),
    pre_hooks: Sequence[Callable[..., Any]] = (),
    post_hooks: Sequence[Callable[..., Any]] = (),
    tool_search: bool = False,
    **options: Unpack[GivenOptions],
) -> dict[str, Any]:
    """The arguments of an agent that has these tools and hooks. One agent serves all users: with a database, each session of agno
    has a session of Overspill; without one, each run has.

    `session`: a session to share, or its name. `budget`: the model's window, which agno does not know. `tool_search`: the model
    searches for these functions and those of toolkits, if the setting `toolSearch` says so.
    """
    adapter = _Adapter(Options("agno", **options, notice=False, tool_search=tool_search))
    return {
        "tools": adapter.choose(tools),
        "tool_hooks": [*tool_hooks, _know_signature(adapter.wrap_tool)],
        "pre_hooks": [adapter.begin, *pre_hooks],
        "post_hooks": [*post_hooks, adapter.end],
    }


def _know_signature(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Give a hook its signature as an attribute. Without it, agno works the signature out ten times in each call."""

    @wraps(hook)
    def known(**arguments: Any) -> Any:
        return hook(**arguments)

    known.__dict__["__signature__"] = inspect.signature(hook)
    return known


_AgnoRun: TypeAlias = tuple[AgentRun, Any]
"""A run, and its event loop; None for a blocking run."""


class _Adapter:
    def __init__(self, options: Options) -> None:
        self._sessions = Sessions(options)
        self._search = self._sessions.searches.begin()
        self._runs: dict[str, _AgnoRun] = {}
        self.tools = [
            Function(
                name=tool["name"],
                description=tool["description"],
                parameters=tool["parameters"],
                entrypoint=refuse,
                skip_entrypoint_processing=True,
            )
            for tool in self._sessions.definitions
        ]

    def choose(self, tools: Sequence[Any]) -> list[Any]:
        """Return the tools to offer: all tools and ours, or those that are not searched for."""
        if not self._search.is_on:
            return [*tools, *self.tools]
        given = [each for tool in tools for each in _list_functions(tool)]
        made = [*map(_make_function, given)]
        original = {id(each): tool for each, tool in zip(made, given, strict=True)}
        chosen = self._search.choose([*made, *self.tools], attrgetter("parameters"), may_hide=_may_hide)
        return [original.get(id(each), each) for each in chosen]

    def begin(self, run_context: Any, agent: Any = None, team: Any = None) -> None:
        self._begin(run_context, agent or team, find_loop())

    def end(self, run_context: Any) -> None:
        """End a run. agno does not wait for a hook that is not async, and skips async hooks in blocking runs. So an async run is
        only forgotten here, and its session closes right after."""
        run, loop = self._runs.pop(run_context.run_id, (None, None))
        if run is not None and loop is None:
            run.close_sync()

    def wrap_tool(
        self,
        function_name: str,
        function_call: Callable[..., Any],
        arguments: dict[str, Any],
        run_context: Any,
        agent: Any = None,
        team: Any = None,
    ) -> Any:
        """Run a tool through Overspill. agno runs a hook that is not async wherever it runs the tool: on the event loop if the
        tool is async, in a thread if it is not, or in the thread of a blocking run."""
        here = find_loop()
        run, loop = self._runs.get(run_context.run_id) or self._begin(run_context, agent or team, here)
        found = self._search.read(function_name, arguments)
        if isinstance(found, str):
            return found
        if found is not None:
            inner, model = self._prepare(*found, run_context, agent, team), (agent or team).model
            if loop is None:
                return self._show(inner, inner.execute())

            async def call_found() -> Any:
                success, _, _, done = await model.arun_function_call(inner)
                if isinstance(success, Exception):
                    raise success
                return self._show(inner, done)

            return asyncio.run_coroutine_threadsafe(call_found(), loop).result() if here is None else call_found()
        tool = make_tool(function_call, arguments, is_async=here is not None)
        said = partial(read_said, run_context.messages or ())
        if loop is None:
            return write_result(run.call_sync(function_name, dict(arguments), tool, messages=said), run.news)

        async def call() -> Any:
            return write_result(await run.call(function_name, dict(arguments), tool, messages=said), run.news)

        return asyncio.run_coroutine_threadsafe(call(), loop).result() if here is None else call()

    def _prepare(self, name: str, args: dict[str, Any], run_context: Any, agent: Any, team: Any) -> FunctionCall:
        """Prepare a call as agno does, with hooks, a cache and the parts of the run that the function takes."""
        function = self._search.find(name)._per_run_copy()
        function._agent, function._team, function._run_context = agent, team, run_context
        function.tool_hooks = (agent or team).tool_hooks
        return FunctionCall(function=function, arguments=args)

    def _show(self, call: FunctionCall, done: Any) -> Any:
        if done.status == "success":
            return done.result
        return self._search.explain(call.function.name, call.arguments, done.error) or str(done.error)

    def _begin(self, run_context: Any, owner: Any, loop: Any) -> _AgnoRun:
        """Begin a run. It has no conversation without a database, because agno then gives all runs of an agent the same id."""
        is_kept = getattr(owner, "db", None) is not None
        conversation = json.dumps([run_context.user_id, run_context.session_id]) if is_kept else ""
        begun = self._runs[run_context.run_id] = (self._sessions.begin_run(conversation), loop)
        begun[0].searching = self._search
        weakref.finalize(run_context, self._runs.pop, run_context.run_id, None)  # a run that fails has no post hook
        return begun


def _list_functions(tool: Any) -> list[Any]:
    """Return the functions of a toolkit that has nothing else, or the tool itself."""
    is_more = isinstance(tool, Toolkit) and (tool.async_functions or tool.instructions or tool.requires_connect)
    return [*tool.functions.values()] if isinstance(tool, Toolkit) and tool.functions and not is_more else [tool]


def _make_function(tool: Any) -> Function:
    """Make a function of a tool. It has no entrypoint if the tool is something else, such as a tool of the provider."""
    if isinstance(tool, Function):
        made = tool._per_run_copy()
        made.process_entrypoint()
        return made
    is_plain = callable(tool) and not isinstance(tool, Toolkit) and not hasattr(tool, "_agno_approval_type")
    return Function.from_callable(tool) if is_plain else Function(name=str(getattr(tool, "__name__", id(tool))))


def _may_hide(made: Function) -> bool:
    """Whether a tool may be searched for. agno applies some options only to calls that the model makes itself."""
    is_special = any(getattr(made, name) for name in (*_OF_OWN_CALLS.split(), "instructions"))
    return not is_special and made.entrypoint is not None and not entrypoint_accepts_media(made.entrypoint)


def read_said(messages: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"role": each.role, "content": each.get_content_string()} for each in messages[-20:]]


def make_tool(function_call: Callable[..., Any], arguments: dict[str, Any], *, is_async: bool) -> Callable[..., Any]:
    """Make the tool that Overspill runs. agno stores the dictionary of arguments with the run, so what a stored output fills in
    is in that dictionary only during the call."""
    given = dict(arguments)

    def call(**filled: Any) -> Any:
        arguments.update(filled)
        try:
            return _read_result(function_call(**filled))
        finally:
            arguments.update(given)

    async def call_async(**filled: Any) -> Any:
        arguments.update(filled)
        try:
            return _read_result(await function_call(**filled))
        finally:
            arguments.update(given)

    return call_async if is_async else call


def _read_result(result: Any) -> Any:
    if isinstance(result, ToolResult):
        return Output(result.content, original=result)
    is_stream = inspect.isgenerator(result) or inspect.isasyncgen(result)
    return Output([], original=result) if is_stream else result  # agno reads the stream itself, and shows what it yields


def write_result(reply: Reply, news: Callable[[], str]) -> Any:
    """Make the result for agno. Text also says which slow tools have finished, because agno's requests have no place for that."""
    if isinstance(reply.original, ToolResult):
        return reply.value if reply.passed else reply.original.model_copy(update={"content": reply.text})
    shown = show_reply(reply)
    return "\n\n".join(part for part in (shown, news()) if part) if isinstance(shown, str) else shown
