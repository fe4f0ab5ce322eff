"""CrewAI: `Agent(…, tools=wrap_tools([…], session))`."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from overspill.errors import BadRequest, require
from overspill.gate.intent import LOOKING_FOR
from overspill.integrations import functions
from overspill.integrations.options import Asking, MissingFramework, Options
from overspill.integrations.searching import Searching
from overspill.integrations.sessions import AgentRun, Sessions
from overspill.session.sync import SyncSession

try:
    from crewai.tools import BaseTool, tool
    from crewai.utilities.string_utils import sanitize_tool_name
    from pydantic import Field, PrivateAttr, create_model
except ModuleNotFoundError as error:
    raise MissingFramework("crewai", "crewai>=1.15") from error


def wrap_tools(
    tools: Sequence[BaseTool | Callable[..., Any]], session: SyncSession, *, tool_search: bool = False
) -> list[BaseTool]:
    """The same tools, and the retrieval tools after them. Functions become tools, as with CrewAI's `@tool`.

    With `tool_search`, the model searches for them if the setting `toolSearch` says so, but not for a tool whose result is the
    answer. Wrap them once for each conversation. Give the session `notice=False`: CrewAI has no place for a notice.
    """
    require("session", session, SyncSession, "a SyncSession, because CrewAI runs tools in threads")
    require("tools", tools, Sequence, "a list of tools")
    sessions = Sessions(Options("crewai", session=session, tool_search=tool_search))
    run = sessions.begin_run()
    taken = [tool(functions.make_function(each, session, run)) for each in sessions.definitions]
    given = [each if isinstance(each, BaseTool) else tool(each) for each in tools]
    for each in given:
        if session.owns(sanitize_tool_name(each.name)):
            raise BadRequest(
                f"{each.name} cannot be a tool, because Overspill has a tool of that name. Give the session a tool_prefix."
            )
    wrapped = [_make(each, _call_through(each, run), _widen(sessions.asking, each)) for each in given]
    by_name = {sanitize_tool_name(each.name): each for each in wrapped}
    ours = [_make(each, _ask(each, run.searching, by_name)) for each in taken]
    return run.searching.choose(
        [*wrapped, *ours],
        lambda each: each.args_schema.model_json_schema(),
        name=lambda each: sanitize_tool_name(each.name),
        may_hide=lambda each: not each.result_as_answer,
    )


class _Replaced(str):
    """What the model sees instead of a result. CrewAI must not cache it: the next call may get more, or be in another session."""


class _WrappedTool(BaseTool):
    _call: Callable[..., Any] = PrivateAttr()

    def _run(self, **args: Any) -> Any:
        return self._call(**args)


def _widen(asking: Asking, tool: BaseTool) -> Any:
    """Return the schema of the model's arguments, with `looking_for` if the tool takes it."""
    schema = tool.args_schema.model_json_schema()
    added = asking.widen(sanitize_tool_name(tool.name), schema)
    if added is schema:
        return tool.args_schema
    described = Field(default=None, description=added["properties"][LOOKING_FOR]["description"])
    ours: dict[str, Any] = {LOOKING_FOR: (str | None, described)}
    return create_model(tool.args_schema.__name__, __base__=tool.args_schema, **ours)


def _make(original: BaseTool, call: Callable[..., Any], args_schema: Any = None) -> BaseTool:
    wrapped = _WrappedTool(
        name=original.name,
        description=original.description,
        args_schema=args_schema or original.args_schema,
        result_schema=original.result_schema,
        result_as_answer=original.result_as_answer,
        tool_failure_policy=original.tool_failure_policy,
        cache_function=lambda args, result: not isinstance(result, _Replaced) and original.cache_function(args, result),
    )
    wrapped._call = call
    return wrapped


def _call_through(original: BaseTool, run: AgentRun) -> Callable[..., Any]:
    name = sanitize_tool_name(original.name)

    def call(**args: Any) -> Any:
        """Call the tool. If the result is text, add which slow tools have finished."""
        reply = run.call_sync(name, args, original.run)
        shown, news = functions.show_reply(reply), run.news()
        text = "\n\n".join(part for part in (shown if isinstance(shown, str) else reply.text, news) if part)
        return _Replaced(text) if news or not reply.passed else shown

    return call


def _ask(retrieval: Any, search: Searching, tools: Mapping[str, BaseTool]) -> Callable[..., Any]:
    def call(**args: Any) -> Any:
        found = search.read(retrieval.name, args)
        if not isinstance(found, tuple):
            return _Replaced(found or retrieval.func(**args))
        try:
            return _Replaced(tools[found[0]].run(**found[1]))
        except ValueError as problem:  # CrewAI raises it if arguments do not fit
            if not (why := search.explain(*found, problem)):
                raise
            return _Replaced(why)

    return call
