"""The tools that a program may call, which the user has listed. Each call takes the same route as a model's call."""

from __future__ import annotations

import hashlib
import inspect
import json
import keyword
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, cast

import anyio.to_thread
import msgspec
from msgspec import Struct

from overspill.calls.invoke import Tool
from overspill.calls.service import CallService
from overspill.errors import BadRequest
from overspill.gate.collect import field
from overspill.gate.off_loop import run_off_loop
from overspill.programs.content import MAX_LOADED_BYTES
from overspill.programs.library import Trace
from overspill.reading.references import Check, matches
from overspill.schema.signatures import write_signature
from overspill.settings import Settings
from overspill.text.arguments import read_arguments
from overspill.text.names import own_name
from overspill.text.regex import regex
from overspill.types import Kind, LineageCall, Reply, ToolCall
from overspill.wording import programs as wording

MAX_CALLS = 100
_MAX_LISTED = 50
_NOT_IN_NAMES = regex(r"\W", re.ASCII)


class ProgramTool(Struct, frozen=True):
    """A host's tool: its description, and the function to run. Programs may call it if the user's settings say so."""

    name: str
    description: str
    parameters: Mapping[str, Any] | None
    """A JSON Schema; None for a Python function, which has a signature."""
    run: Tool
    """Called with keyword arguments. Its result passes the gate."""
    server: str = ""
    kind: Kind = "function"
    check: Check | None = None
    """Checks the arguments after stored outputs have been filled in."""
    is_read_only: bool = False
    """Whether its server declares it read-only."""
    returns: Mapping[str, Any] | None = None


ListTools: TypeAlias = Callable[[], Awaitable[Iterable[ProgramTool]]]


def select_allowed(tools: Iterable[ProgramTool], settings: Settings) -> dict[str, ProgramTool]:
    """Return the allowed tools by the names that programs use: `server.tool`, or `tool` for a function of the host program."""
    allowed: dict[str, ProgramTool] = {}
    for tool in tools:
        own = own_name(tool.name, tool.server) if tool.server else tool.name
        patterns = [each if tool.server else f"/{each.removeprefix('/')}" for each in settings.program_tools]
        is_listed = any(matches(pattern, tool.server, own) for pattern in patterns)
        if is_listed or (tool.is_read_only and tool.server in settings.trust_read_only):
            path = (tool.server, own) if tool.server else (own,)
            allowed.setdefault(".".join(map(_make_identifier, path)), tool)
    return allowed


def _make_identifier(name: str) -> str:
    spelt = _NOT_IN_NAMES.sub("_", name)
    is_taken = keyword.iskeyword(spelt) or spelt in wording.FUNCTIONS or spelt == "json"
    return f"{'_' * (not spelt or spelt[0].isdigit())}{spelt}{'_' * is_taken}"


def define_tools(names: Iterable[str]) -> str:
    """Write Python code that defines these names as functions in a program. They are identifiers, so no other code gets in."""
    servers = dict.fromkeys(f"{name.partition('.')[0]} = _Server()\n" for name in names if "." in name)
    return "".join([*servers, *(f"{name} = _tool({name!r})\n" for name in names)])


class ProgramTools:
    """The calls of tools by one program."""

    def __init__(
        self, allowed: Mapping[str, ProgramTool], calls: CallService, trace: Trace, redact: Callable[[str, str, str], str]
    ) -> None:
        """`redact` hides secrets before a result is hashed."""
        self._allowed, self._calls, self._trace, self._redact = allowed, calls, trace, redact
        self._count = 0

    def write_stubs(self, names: Sequence[str]) -> str:
        """Describe the tools with these names as Python functions. Without names, describes all tools."""
        wanted = [str(name) for name in names] or list(self._allowed) or ["any tool here"]
        more = [f"# and {len(wanted) - _MAX_LISTED} more: {', '.join(wanted[_MAX_LISTED:500])}"] if wanted[_MAX_LISTED:] else []
        return "\n".join([*map(self._write_stub, wanted[:_MAX_LISTED]), *more])

    def _write_stub(self, name: str) -> str:
        tool = self._allowed.get(name)
        if tool is None:
            return f"# {wording.not_allowed(name[:100], self._allowed)}"
        if tool.parameters is not None:
            return write_signature(name, tool.parameters, tool.returns, tool.description)
        written = "(**arguments)"
        with suppress(TypeError, ValueError):
            written = str(inspect.signature(tool.run))
        return f"async def {name}{written}: ...  # {(inspect.getdoc(tool.run) or '').partition(chr(10))[0]}".rstrip(" #")

    async def call(self, name: str, written: str) -> tuple[str, str]:
        """Call a tool, and return its whole result: `json` or `text`, and the text."""
        tool = self._allowed.get(name)
        if tool is None:
            raise BadRequest(wording.not_allowed(name[:100], self._allowed))
        self._count += 1
        if self._count > MAX_CALLS:
            raise BadRequest(f"A program may call tools {MAX_CALLS} times. Save what is ready, and continue in another program.")
        self._trace.enter(tool.server, tool.name, name)
        call = ToolCall("", tool.name, read_arguments(written), tool.server, tool.kind)
        reply = await self._calls.call(call, tool.run, background=False, check=tool.check, for_program=True)
        kept, text = reply.kept, reply.text
        if kept is not None and (kept.missing or kept.media == "binary" or kept.size.bytes > MAX_LOADED_BYTES):
            why = kept.missing or ("it is not text" if kept.media == "binary" else "it is too large for a program to take whole")
            raise BadRequest(f"The result of {name} is stored as {kept.name}: {why}. Try parts({kept.name!r}).")
        hashed = await run_off_loop(partial(self._redact, text, tool.name, tool.server), len(text))
        digest = hashlib.sha256(hashed.encode("utf-8", "surrogatepass")).hexdigest()
        self._trace.calls.append(LineageCall(tool.name, tool.server, digest, kept.handle if kept else ""))
        if reply.is_error:
            raise BadRequest(f"{name} failed: {text[:2000]}")
        return await anyio.to_thread.run_sync(_read_result, text, reply)


def _read_result(text: str, reply: Reply) -> tuple[str, str]:
    """Return the tool's structured result as JSON, or else its text, which may also be JSON."""
    structured = field(reply.original, "structuredContent") if reply.original is not None else None
    if isinstance(structured, dict):
        members = cast("dict[str, Any]", structured)
        return "json", json.dumps(members["result"] if members.keys() == {"result"} else members)
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return "text", text
    return "json", text
