"""`run_program`: a program of the model as a tool call. It is raced and gated like any tool, and what it ran on is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from inspect import iscoroutinefunction
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from overspill.calls.job import current
from overspill.calls.service import Background, CallService
from overspill.errors import BadRequest, MissingPackage, require
from overspill.programs.library import ProgramLibrary, Trace
from overspill.programs.tools import ListTools, ProgramTool, ProgramTools, define_tools, select_allowed
from overspill.retrieval.definitions import RunProgram, has_programs, parse_arguments
from overspill.retrieval.extractor import Extractor
from overspill.retrieval.tables import OutputTables
from overspill.types import Output, Reply, ToolCall
from overspill.wording import programs as wording

if TYPE_CHECKING:
    from overspill.programs.sandbox import Sandbox

NAME = "run_program"
MAX_CODE_CHARS = 50_000
_NO_ALIASES: Mapping[str, str] = MappingProxyType({})


async def _list_none() -> Iterable[ProgramTool]:
    return ()


class Programs:
    """The programs of one session. `list_tools` lists the host's tools; programs may call the tools that the settings allow."""

    def __init__(self, tables: OutputTables, extractor: Extractor, calls: CallService) -> None:
        self._tables, self._extractor, self._settings, self._calls = tables, extractor, tables.gate.settings, calls
        self._sandbox: Sandbox | None = None
        self.list_tools: ListTools = _list_none

    async def invoke(self, args: Mapping[str, Any], id: str) -> Reply:
        """Answer a model's call. Mistakes of the model become answers and are not raised."""
        try:
            return await self.run(parse_arguments(NAME, RunProgram, args).code, id=id)
        except (BadRequest, MissingPackage) as error:
            return self._calls.refuse(ToolCall(id, NAME, args), error)

    async def run(
        self, code: str, *, id: str = "", background: Background | None = None, aliases: Mapping[str, str] = _NO_ALIASES
    ) -> Reply:
        if not has_programs():
            raise MissingPackage("A program", "programs")
        require("code", code, str, "a string")
        if len(code) > MAX_CODE_CHARS:
            raise BadRequest(f"The program has {len(code):,} characters. The limit is {MAX_CODE_CHARS:,}.")
        trace = Trace(code, [(way.from_, way.to) for way in self._settings.refs.allow])
        library = ProgramLibrary(self._tables, self._extractor, trace, aliases)
        call = ToolCall(id, NAME, {"code": code})

        async def run(code: str) -> Output:
            return await self._run(code, library, trace)

        reply = await self._calls.call(call, run, background=background)
        if reply.kept is None and reply.job is None:  # the output passed, but is still stored to record what it was made from
            await library.keep(reply.text, call.args)
            await self._calls.settle()
        return reply

    async def _run(self, code: str, library: ProgramLibrary, trace: Trace) -> Output:
        """Run the program, as the tool that `calls` runs."""
        allowed = select_allowed(await self.list_tools(), self._settings)
        tools = ProgramTools(allowed, self._calls, trace, self._tables.gate.redaction.redact)
        functions: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
            "_load": (library.read, (str,)),
            "_parts": (library.list_parts, (str,)),
            "_text": (library.slice, (str, int, int | NoneType)),
            "_sql": (library.query, (str,)),
            "_find": (library.find, (str, str)),
            "_save": (library.save, (str, str)),
            "_tool_stubs": (tools.write_stubs, (list,)),
            "_call": (tools.call, (str, str)),
        }

        async def answer(name: str, args: tuple[Any, ...]) -> Any:
            function, takes = functions[name]
            if len(args) != len(takes) or not all(map(isinstance, args, takes)):
                raise BadRequest(wording.wrong_arguments(name[1:]))
            return await (function(*args) if iscoroutinefunction(function) else anyio.to_thread.run_sync(function, *args))

        sandbox = await anyio.to_thread.run_sync(self._open_sandbox)
        seconds, failure = self._settings.program_timeout_secs, ""
        try:
            ending = await sandbox.run(code, define_tools(allowed), answer, seconds)
        finally:
            job = current.get()
            if job is not None and job.result is not None:  # anything stored from this call says what it was made from
                job.result.lineage = trace.describe()
        if ending.is_late:
            failure = wording.ended(seconds, has_stored=bool(library.saved or trace.calls))
        elif ending.cause:
            failure = wording.describe_failure(ending.cause, ending.line, ending.source, allowed)
        saved = [kept.name for kept in library.saved]
        text = wording.result(ending.printed, ending.value, failure, saved, list(library.notes))
        return Output([{"type": "text", "text": text}], is_error=bool(failure), original=text)

    def _open_sandbox(self) -> Sandbox:
        self._sandbox = opened = self._sandbox or import_module("overspill.programs.sandbox").Sandbox()
        return opened

    def close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
