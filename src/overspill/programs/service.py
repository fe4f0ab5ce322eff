"""`run_program`: a program of the model as a tool call. It is raced and gated like any tool, and what it ran on is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from msgspec import Struct

from overspill.calls.job import current
from overspill.calls.service import Background, CallService
from overspill.errors import BadRequest, MissingPackage, require
from overspill.gate.gate import Gate
from overspill.programs.borders import Borders
from overspill.programs.library import ProgramLibrary
from overspill.programs.tools import ListTools, ProgramTool, ProgramTools, define_tools, select_allowed
from overspill.retrieval.definitions import RunProgram, has_programs, parse_arguments
from overspill.retrieval.extractor import Extractor
from overspill.retrieval.outputs import StoredOutputs
from overspill.retrieval.tables import OutputTables
from overspill.types import Lineage, Output, Reply, ToolCall
from overspill.wording import programs as wording

if TYPE_CHECKING:
    from overspill.programs.sandbox import Ending, Sandbox

NAME = "run_program"
MAX_CODE_CHARS = 50_000
_NO_ALIASES: Mapping[str, str] = MappingProxyType({})


async def _list_none() -> Iterable[ProgramTool]:
    return ()


class Programs:
    """Of one session. `list_tools` lists the tools of the host; programs may call those that the settings allow."""

    def __init__(
        self, gate: Gate, outputs: StoredOutputs, tables: OutputTables, extractor: Extractor, calls: CallService
    ) -> None:
        self._gate, self._outputs, self._tables, self._extractor, self._calls = gate, outputs, tables, extractor, calls
        self._sandbox: Sandbox | None = None
        self.list_tools: ListTools = _list_none

    async def invoke(self, args: Mapping[str, Any], id: str) -> Reply:
        """A model's call. Its mistakes are answered, not raised."""
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
            raise BadRequest(f"The program has {len(code):,} characters. The most is {MAX_CODE_CHARS:,}.")
        borders = Borders([(way.from_, way.to) for way in self._gate.settings.refs.allow])
        library = ProgramLibrary(self._gate, self._outputs, self._tables, self._extractor, borders, aliases)
        program = _Program(self, code, library, borders)
        call = ToolCall(id, NAME, {"code": code})
        reply = await self._calls.call(call, program.run, background=background)
        if reply.kept is None and reply.job is None:  # it passed, and is recorded with what it ran on all the same
            await library.keep(reply.text, call.args, library.describe(code))
            await self._calls.settle()
        return reply

    def find_allowed(self, tools: Iterable[ProgramTool]) -> dict[str, ProgramTool]:
        return select_allowed(tools, self._gate.settings)

    def join_tools(self, allowed: Mapping[str, ProgramTool], borders: Borders) -> ProgramTools:
        return ProgramTools(allowed, self._calls, borders)

    @property
    def seconds(self) -> float:
        return self._gate.settings.program_timeout_secs

    def open_sandbox(self) -> Sandbox:
        self._sandbox = opened = self._sandbox or import_module("overspill.programs.sandbox").Sandbox()
        return opened

    def close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()


class _Program(Struct, frozen=True):
    programs: Programs
    code: str
    library: ProgramLibrary
    borders: Borders

    async def run(self, code: str) -> Output:
        """The tool, as `calls` runs it."""
        allowed = self.programs.find_allowed(await self.programs.list_tools())
        tools = self.programs.join_tools(allowed, self.borders)
        sandbox = await anyio.to_thread.run_sync(self.programs.open_sandbox)

        async def answer(name: str, args: tuple[Any, ...]) -> Any:
            match name, args:
                case "_read", (str(output),):
                    return await self.library.read(output)
                case "_parts", (str(output),):
                    return await self.library.list_parts(output)
                case "_text", (str(output), int(start), int() | None as end):
                    return await self.library.slice(output, start, end)
                case "_sql", (str(statement),):
                    return await self.library.query(statement)
                case "_find", (str(question), str(output)):
                    return await self.library.find(question, output)
                case "_save", (str(label), str(text)):
                    return await self.library.save(label, text, code)
                case "_stubs", _:
                    return tools.write_stubs([str(each) for each in args[0]])
                case "_call", (str(tool), str(written)):
                    return await tools.call(tool, written)
                case _ if name in wording.HOST_FUNCTIONS:
                    raise BadRequest(wording.HOST_FUNCTIONS[name])
                case _:
                    raise LookupError(name)

        try:
            ending = await sandbox.run(code, define_tools(allowed), answer, self.programs.seconds)
        finally:
            self._label(self.library.describe(code))
        return self._word(ending, allowed)

    def _label(self, lineage: Lineage) -> None:
        """Whatever is stored of this call says what it was made from, and whose it is."""
        job = current.get()
        if job is not None and job.result is not None:
            job.result.lineage = lineage

    def _word(self, ending: Ending, allowed: Mapping[str, ProgramTool]) -> Output:
        failure = ""
        if ending.is_late:
            failure = wording.ended(self.programs.seconds)
        elif ending.cause:
            failure = wording.describe_failure(ending.cause, ending.line, ending.source, wording.suggest(ending.cause, allowed))
        saved = [kept.name for kept in self.library.saved]
        text = wording.result(ending.printed, ending.value, failure, saved, list(self.library.notes))
        return Output([{"type": "text", "text": text}], is_error=bool(failure))
