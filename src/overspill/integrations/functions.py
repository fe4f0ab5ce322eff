"""`wrap_tools`: Python functions whose results go through a session, for every framework that takes functions as tools."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Annotated, Any, Literal, Optional

from overspill.errors import BadRequest, describe_type, require
from overspill.gate.collect import block_text
from overspill.gate.intent import LOOKING_FOR
from overspill.integrations.options import Asking, Options
from overspill.integrations.sessions import AgentRun, Sessions, refuse
from overspill.programs.tools import ProgramTool
from overspill.session.session import Session
from overspill.session.sync import SyncSession
from overspill.types import Reply

_TYPES: dict[str, Any] = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list[str]}


def wrap_tools(
    tools: Sequence[Callable[..., Any]], session: Session | SyncSession, *, tool_search: bool = False
) -> list[Callable[..., Any]]:
    """The same functions, and the retrieval tools after them. With a `Session` all are async, with a `SyncSession` none is.

    Each has the name, the signature and the docstring of its tool. With the setting `intent: ask`, it has another argument, in
    which the model says what it is looking for. Programs may call the functions that the setting `programTools` lists. With
    `tool_search`, the model searches for them if the setting `toolSearch` says so. Wrap the tools once for each conversation.
    """
    require("session", session, (Session, SyncSession), "a Session or a SyncSession")
    require("tools", tools, Sequence, "a list of functions")
    offered = session.tool_search(tools) if tool_search else tools  # first, because it changes which tools are our own
    sessions = Sessions(Options("functions", session=session))
    run = sessions.begin_run()
    wrapped = [_wrap(tool, session, run, sessions.asking) for tool in offered]

    async def list_tools() -> list[ProgramTool]:
        return [ProgramTool(_find_name(tool), "", None, tool) for tool in tools]

    session.offer_to_programs(list_tools)
    return [*wrapped, *(make_function(tool, session, run) for tool in session.tools())]


def show_reply(reply: Reply) -> Any:
    """Return what a framework gets as the result: the tool's own object, a string, or blocks if there is more than text."""
    if reply.passed:
        return reply.value
    return reply.text if all(block_text(block) is not None for block in reply.content) else reply.content


def _wrap(tool: Callable[..., Any], session: Session | SyncSession, run: AgentRun, asking: Asking) -> Callable[..., Any]:
    if not callable(tool):  # pyright: ignore[reportUnnecessaryComparison]
        raise BadRequest(f"A tool must be a function, not {describe_type(tool)}.")
    name = _find_name(tool)
    signature = inspect.signature(tool)
    if any(each.kind in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL) for each in signature.parameters.values()):
        raise BadRequest(f"{name} cannot be a tool: models pass arguments by name, and {signature} has some without a name.")
    if session.owns(name):
        raise BadRequest(f"{name} cannot be a tool, because Overspill has a tool of that name. Give the session a tool_prefix.")

    shown = _ask(asking, name, signature)

    def bind(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        named: dict[str, Any] = {}
        for key, value in shown.bind(*args, **kwargs).arguments.items():
            named |= value if shown.parameters[key].kind is inspect.Parameter.VAR_KEYWORD else {key: value}
        return named

    async def call(*args: Any, **kwargs: Any) -> Any:
        return show_reply(await run.call(name, bind(args, kwargs), tool))

    def call_sync(*args: Any, **kwargs: Any) -> Any:
        return show_reply(run.call_sync(name, bind(args, kwargs), tool))

    wrapped: Any = wraps(tool)(call if isinstance(session, Session) else call_sync)
    if shown is not signature:
        wrapped.__signature__ = shown
        wrapped.__annotations__ = {**wrapped.__annotations__, LOOKING_FOR: shown.parameters[LOOKING_FOR].annotation}
    return wrapped


def _find_name(tool: Callable[..., Any]) -> str:
    return getattr(tool, "__name__", type(tool).__name__)


def _ask(asking: Asking, name: str, signature: inspect.Signature) -> inspect.Signature:
    """Return the signature that frameworks turn into a schema, with `looking_for` if the tool takes it."""
    schema: dict[str, Any] = {"type": "object", "properties": {key: {} for key in signature.parameters}, "required": []}
    widened = asking.widen(name, schema)
    if widened is schema:
        return signature
    annotation: Any = Annotated[Optional[str], widened["properties"][LOOKING_FOR]["description"]]  # noqa: UP045
    ours = inspect.Parameter(LOOKING_FOR, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
    own = list(signature.parameters.values())
    last = [each for each in own if each.kind is inspect.Parameter.VAR_KEYWORD]
    return signature.replace(parameters=[*(each for each in own if each not in last), ours, *last])


def make_function(tool: Mapping[str, Any], session: Session | SyncSession, run: AgentRun) -> Callable[..., Any]:
    """Make a retrieval tool into a function from which frameworks can read the schema."""
    name, described = tool["name"], _describe_parameters(tool["parameters"])

    async def ask(**args: Any) -> Any:
        return show_reply(await run.call(name, _rename(args), refuse))

    def ask_sync(**args: Any) -> Any:
        return show_reply(run.call_sync(name, _rename(args), refuse))

    function: Any = ask if isinstance(session, Session) else ask_sync
    function.__name__ = function.__qualname__ = name
    lines = [f"    {each.name}: {words}" for each, words in described]
    function.__doc__ = "\n".join([f"{tool['description']}.", *(["", "Args:"] if lines else []), *lines])
    parameters = [each for each, _ in described]
    function.__signature__ = inspect.Signature(parameters, return_annotation=str)
    function.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": str}
    return function


def _describe_parameters(schema: Mapping[str, Any]) -> list[tuple[inspect.Parameter, str]]:
    found: list[tuple[inspect.Parameter, str]] = []
    for key, property in schema["properties"].items():
        kind: Any = Literal[tuple(property["enum"])] if "enum" in property else _TYPES[property["type"]]
        is_required = key in schema["required"]
        annotation, default = (kind, inspect.Parameter.empty) if is_required else (Optional[kind], None)  # noqa: UP045
        name = "from_" if key == "from" else key  # `from` cannot be the name of a parameter
        words = property.get("description", key) + (", written as `from`" if key == "from" else "")
        found.append((inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation), words))
    return found


def _rename(args: Mapping[str, Any]) -> dict[str, Any]:
    return {"from" if key == "from_" else key: value for key, value in args.items()}
