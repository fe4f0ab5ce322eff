"""The tools that agents name: Python functions, imported once per run, and MCP servers, started once per run.

MCP is imported only for agents that name a server.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, Union, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType

from overspill.agent import wording
from overspill.agent.file import Agent
from overspill.agent.internal import PREFIX
from overspill.agent.progress import ModelSaid, Observe
from overspill.errors import MissingPackage, ServerError, SettingsError
from overspill.mcp.client.config import server_configs
from overspill.programs.tools import ProgramTool
from overspill.retrieval.definitions import TOOLS
from overspill.schema import fits_schema
from overspill.settings.keys import LoginSettings
from overspill.settings.modules import load_module
from overspill.text.humanize import suggest_nearest
from overspill.text.names import qualify_name
from overspill.text.regex import regex
from overspill.types import Output

FunctionReference: TypeAlias = str | Callable[..., Any]
"""`module:function`, `file.py:function`, or the function itself."""
Files: TypeAlias = dict[Path, ModuleType]
"""The modules imported so far."""
_FUNCTION_NAME = regex(r"[A-Za-z0-9_-]{1,64}")
_UNNAMED_KINDS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def failure(text: str) -> Output:
    """The output of a tool that failed, in its own words."""
    return Output([{"type": "text", "text": text}], is_error=True)


class Toolbox(Struct, frozen=True):
    functions: Mapping[str, ProgramTool]
    servers: Mapping[str, Mapping[str, ProgramTool]]
    """The tools by server, and then by the name that the server uses."""

    def of(self, agent: Agent, more: Iterable[str] = ()) -> dict[str, ProgramTool]:
        """Return what this agent can call, by name. `more` are functions that its file does not name."""
        found: dict[str, ProgramTool] = {}
        for name, only in [*_wanted_tools(agent), *((each, None) for each in more)]:
            if name in self.functions:
                found[name] = self.functions[name]
                continue
            offered = self.servers[name]
            if missing := sorted((only or frozenset()) - set(offered)):
                raise SettingsError(
                    f"{agent.file.name} names the tool {missing[0]!r}, which the server {name} does not have. It has "
                    f"{', '.join(sorted(offered)) or 'no tools'}."
                )
            for tool, offer in offered.items():
                if only is not None and tool not in only:
                    continue
                if offer.name.startswith(PREFIX):
                    raise SettingsError(
                        f"The tool {tool} of the server {name} would be called {offer.name}, but names that begin with "
                        f"{PREFIX} are reserved. Rename the server in your settings."
                    )
                if found.setdefault(offer.name, offer) is not offer:
                    raise SettingsError(
                        f"Two tools of {agent.file.name} would both be called {offer.name}. Leave one out, or rename a server."
                    )
        return found


def _wanted_tools(agent: Agent) -> list[tuple[str, frozenset[str] | None]]:
    """The names under `tools`, each with the tools wanted if it is a server's name; None means all of them."""
    found: list[tuple[str, frozenset[str] | None]] = []
    for entry in agent.file.keys.tools:
        found += [(entry, None)] if isinstance(entry, str) else [(name, frozenset(only)) for name, only in entry.items()]
    return found


@asynccontextmanager
async def open_tools(
    agent: Agent, functions: Mapping[str, FunctionReference], environ: Mapping[str, str], observe: Observe
) -> AsyncGenerator[Toolbox]:
    """Open the tools of an agent and all agents below it. Agent files only name tools; your settings define them."""
    known: dict[str, FunctionReference] = {**(agent.settings.functions or {}), **functions}
    servers = agent.settings.mcp_servers or {}
    wanted = {name: each.file.name for each in agent.everyone() for name, _ in _wanted_tools(each)}
    for name, file in wanted.items():
        if name in known and name in servers:
            raise SettingsError(f"{name} is both a function and a server in your settings. Rename one of them.")
        if name not in known and name not in servers:
            raise SettingsError(
                f"{file} names the tool {name!r}, but your settings have it in neither `mcpServers` nor `functions`."
                f"{suggest_nearest(name, [*known, *servers])} An agent file cannot define tools: add it to your own config file, "
                "or use --function."
            )
    files: Files = {}
    loaded = {name: load_function(name, known[name], files) for name in {*wanted, *functions} & set(known)}
    named = {name: servers[name] for name in wanted if name in servers}
    async with _open_servers(named, agent.settings.login, environ, observe) as offered:
        yield Toolbox(loaded, offered)


@asynccontextmanager
async def _open_servers(
    configured: Mapping[str, Any], login: LoginSettings, environ: Mapping[str, str], observe: Observe
) -> AsyncGenerator[Mapping[str, Mapping[str, ProgramTool]]]:
    """Start the servers in parallel and list their tools, by server and tool name. Raises ServerError if one does not start."""
    if not configured:
        yield {}
        return
    try:
        client = import_module("overspill.mcp.client.server")
    except ImportError as missing:
        raise MissingPackage("An agent with MCP servers", "mcp") from missing
    configs = server_configs(configured, "in your settings", environ, login)
    for name in configured:
        if name not in configs:
            raise SettingsError(f"The server {name} is disabled in your settings. Enable it, or remove it from the agent file.")

    def log(text: str) -> None:
        observe(ModelSaid("", text, warning=True))

    async with client.open_servers(configs.values(), environ, log=log) as servers:
        offers: dict[str, dict[str, ProgramTool]] = {}
        for name, server in servers.items():
            try:
                offers[name] = {tool["name"]: _offer(name, server, tool) for tool in await server.list_tools()}
            except ServerError as error:
                raise ServerError(server.problem or str(error)) from None
        yield offers


def _offer(name: str, server: Any, tool: dict[str, Any]) -> ProgramTool:
    async def run(**args: Any) -> Output:
        return await server.call_tool(tool["name"], args)

    parameters: dict[str, Any] = {"type": "object", "properties": {}, **tool["inputSchema"]}
    offered_as, description, hints = qualify_name(tool["name"], name), tool.get("description"), tool.get("annotations")
    return ProgramTool(
        offered_as,
        description or tool["name"],
        parameters,
        run,
        server=name,
        kind="mcp",
        check=fits_schema(parameters, name),
        is_read_only=bool(hints) and hints.get("readOnlyHint") is True,
    )


def load_function(name: str, reference: FunctionReference, files: Files | None = None) -> ProgramTool:
    """Make a tool of a function, described by signature and docstring. Raises SettingsError if it cannot be one."""
    if not _FUNCTION_NAME.fullmatch(name) or name in TOOLS or name.startswith(PREFIX):
        raise SettingsError(
            f"A function cannot be named {name!r}. Use at most 64 letters, digits, _ and -, and not the name of one of "
            f"Overspill's own tools."
        )
    function = reference if callable(reference) else _import_function(name, reference, {} if files is None else files)
    arguments = _build_arguments(name, function)
    try:
        _, parts = msgspec.json.schema_components((arguments,), ref_template="#/$defs/{name}")
    except TypeError as error:
        raise SettingsError(
            f"The function {name} has a parameter that JSON cannot represent: {str(error).splitlines()[-1]}."
        ) from None
    schema = {**parts.pop("Arguments"), "additionalProperties": False, **({"$defs": parts} if parts else {})}
    del schema["title"]
    return ProgramTool(name, inspect.getdoc(function) or name, schema, partial(_call, name, function, arguments))


def _import_function(name: str, reference: str, files: Files) -> Callable[..., Any]:
    """Import a function. Each file is imported only once, so that its functions share state."""
    source, _, attribute = reference.rpartition(":") if isinstance(reference, str) else ("", "", "")  # pyright: ignore[reportUnnecessaryIsInstance]
    if not source or not attribute:
        raise SettingsError(f"The function {name} is {reference!r}. Write it as module:function or file.py:function.")
    if (known := Path(source).expanduser().resolve()) not in files:
        files[known] = load_module(source, f" for the function {name}")
    function: Any = files[known]
    for part in attribute.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise SettingsError(f"The function {name} is {reference!r}, but {source} has no function {attribute!r}.")
    return function


def _build_arguments(name: str, function: Callable[..., Any]) -> type[Struct]:
    """Make a struct of the parameters, which describes and checks them. Optional parameters default to UNSET."""
    try:
        parameters = inspect.signature(function).parameters.values()
        hints = get_type_hints(function)
    except (ValueError, TypeError, NameError) as error:
        raise SettingsError(f"Cannot read the parameters of the function {name}: {error}.") from None
    fields: list[Any] = []
    for each in parameters:
        if each.kind in _UNNAMED_KINDS:
            raise SettingsError(
                f"The function {name} cannot be a tool: models pass arguments by name, and {each} cannot be passed by name."
            )
        type_: Any = hints.get(each.name, Any)
        type_ = Any if type_ is object else type_
        optional = each.default is not inspect.Parameter.empty
        fields.append((each.name, Union[type_, UnsetType], UNSET) if optional else (each.name, type_))  # noqa: UP007
    arguments = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
    msgspec.json.Decoder(arguments)  # now, because threads that use it for the first time together would end the process
    return arguments


def _call(name: str, function: Callable[..., Any], arguments: type[Struct], /, **args: Any) -> Any:
    try:
        checked = msgspec.convert(args, arguments, strict=False)
    except msgspec.ValidationError as error:
        return failure(wording.bad_arguments(name, str(error)))
    return function(**{key: value for key, value in msgspec.structs.asdict(checked).items() if value is not UNSET})
