"""What a program reads and saves: the outputs of its session, through the readers that retrieval uses. Records each access."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from mmap import mmap
from typing import Any

import anyio.to_thread

from overspill import reading
from overspill.errors import BadRequest
from overspill.extraction import BUILTIN
from overspill.programs.content import MAX_LOADED_BYTES, Content, Parts, find_layout, read_content, split_content
from overspill.reading.references import may_pass
from overspill.retrieval.extractor import ExtractionRequest, Extractor
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.tables import OutputTables
from overspill.retrieval.views import describe_gaps
from overspill.text.encoding import decode
from overspill.text.humanize import one_line
from overspill.text.regex import regex
from overspill.types import Kept, Lineage, LineageCall, LineageSource, ToolCall
from overspill.wording import programs as wording


class Trace:
    """What a program has used: all of one server, unless the user permits more, because data must not reach another server."""

    def __init__(self, code: str, allow: Sequence[tuple[str, str]]) -> None:
        self._code, self._allow = code, allow
        self._entered: dict[tuple[str, str], str] = {}
        """By server (empty for the host program) and tool."""
        self.sources: dict[str, LineageSource] = {}
        self.calls: list[LineageCall] = []

    def enter(self, server: str, tool: str, what: str, *, is_output: bool = False) -> None:
        """Note a tool or an output. Raises BadRequest for another server, because arguments may hold anything read so far."""
        here = (server, tool)
        for other, before in self._entered.items():
            if not (may_pass(other, here, self._allow) or (is_output and may_pass(here, other, self._allow))):
                raise BadRequest(wording.other_server(what, before))
        self._entered.setdefault(here, what)

    def describe(self) -> Lineage:
        """Describe what the output was made from. Output from several servers belongs to all, and no single one may have it."""
        server = "+".join(sorted({server for server, _ in self._entered if server}))
        return Lineage(self._code, tuple(self.sources.values()), tuple(self.calls), "python", server)


MAX_SAVED = 50
MAX_SAVED_BYTES = 64 << 20
_FOUND_TOKENS = 2_000
_NOT_IN_LABELS = regex(r"[/\\?#]")


class ProgramLibrary:
    """What one program can load. `aliases` are other names of outputs, such as file names."""

    def __init__(self, tables: OutputTables, extractor: Extractor, trace: Trace, aliases: Mapping[str, str]) -> None:
        self._outputs, self._tables, self._extractor = tables.outputs, tables, extractor
        self._trace, self._aliases = trace, aliases
        self._parts: dict[str, Parts] = {}
        self.saved: list[Kept] = []
        self.notes: dict[str, None] = {}

    async def query(self, statement: str) -> str:
        """Return rows as JSON. Aliases are quoted, as SQL quotes odd names: `FROM "orders.csv"`."""
        for alias, name in self._aliases.items():
            statement = statement.replace(f'"{alias}"', name)
        for name, stored in (await anyio.to_thread.run_sync(self._tables.find_named, statement)).items():
            self._enter(name, stored)
        answer = await self._tables.ask(statement)
        if len(answer.rows) < answer.total:
            raise BadRequest(wording.too_many_rows(answer.total, len(answer.rows)))
        self.notes |= dict.fromkeys(answer.notes)
        return json.dumps([dict(zip(answer.columns, row, strict=True)) for row in answer.rows], ensure_ascii=False)

    async def find(self, question: str, name: str) -> str:
        """Return passages as JSON, with positions that the program's function `text` takes."""
        stored = await anyio.to_thread.run_sync(self._open, name)
        request = ExtractionRequest(tool="extract", query=question, max_tokens=_FOUND_TOKENS, targets=(BUILTIN,))
        found = await self._extractor.extract(stored, "{}", request)
        passages = [
            {"text": each.text, "start": each.start_char, "end": each.end_char, "line": each.start_line}
            for each in found.excerpts
            if not found.is_nearest
        ]
        return json.dumps(passages, ensure_ascii=False)

    async def save(self, label: str, text: str) -> str:
        if len(self.saved) >= MAX_SAVED or len(text) > MAX_SAVED_BYTES:
            raise BadRequest(f"A program may save {MAX_SAVED} outputs, each of at most {MAX_SAVED_BYTES >> 20} MB.")
        # The file name is shown as the source of an output.
        self.saved.append(await self.keep(text, {"filename": _NOT_IN_LABELS.sub("_", one_line(label))}))
        return self.saved[-1].name

    async def keep(self, text: str, args: Mapping[str, Any]) -> Kept:
        return await self._tables.keep(ToolCall("", "run_program", args), text, self._trace.describe())

    def read(self, name: str) -> tuple[str, str]:
        """Return `json` or `lines`, and the text. Blocks, as `list_parts` and `slice` do."""
        base, _, number = name.rpartition("#")
        content = (
            self._read_part(base, int(number)) if base and number.isdecimal() and len(number) < 10 else self._read_whole(name)
        )
        self._add_note(base or name, content.note)
        return content.form, content.text

    def _read_whole(self, name: str) -> Content:
        reader = self._open(name).decoded().reader
        if reader.size > MAX_LOADED_BYTES:
            raise BadRequest(wording.too_large(name, reader.size, MAX_LOADED_BYTES))
        data = reader.read(0, reader.size)
        return read_content(data, find_layout(data))

    def _read_part(self, name: str, number: int) -> Content:
        reads = self._split(name).reads
        if not 1 <= number <= len(reads):
            raise BadRequest(f"{name} has the parts {name}#1 to {name}#{len(reads)}.")
        return reads[number - 1]()

    def list_parts(self, name: str) -> list[str]:
        if self._open(name).decoded().reader.size <= MAX_LOADED_BYTES:
            return [name]
        return [f"{name}#{number}" for number in range(1, len(self._split(name).reads) + 1)]

    def _split(self, name: str) -> Parts:
        """Split an output into parts. Scans it only once, no matter how many parts are loaded."""
        if name not in self._parts:
            data = self._open(name).decoded().reader.buffer()
            text = data.obj if isinstance(data.obj, bytes | mmap) and len(data.obj) == data.nbytes else bytes(data)
            self._parts = {name: split_content(text, find_layout(text))}
            self._add_note(name, self._parts[name].note)
        return self._parts[name]

    def slice(self, name: str, start: int, end: int | None) -> str:
        view = self._open(name).decoded()
        if view.reader.size <= MAX_LOADED_BYTES:
            return decode(view.reader.read(0, view.reader.size))[start:end]
        length = None if end is None else end - start
        found = reading.chars(view.reader, view.positions, start, length, reading.Bound(MAX_LOADED_BYTES))
        if found.omitted:
            raise BadRequest(f"text gives at most {MAX_LOADED_BYTES >> 20} MB at a time. Give it an end nearer to the start.")
        return found.text

    def _open(self, name: str) -> StoredOutput:
        stored = self._outputs.recent(self._aliases.get(name, name))
        self._enter(name, stored)
        return stored

    def _enter(self, name: str, stored: StoredOutput) -> None:
        kept = stored.kept
        self._trace.enter(kept.server, kept.tool, f"{kept.name} of {kept.server or 'this program'}", is_output=True)
        if kept.id not in self._trace.sources:
            self._trace.sources[kept.id] = LineageSource(name, kept.handle, kept.sha256)
            for gap in describe_gaps(kept, stored.decoded()):
                self._add_note(name, gap)

    def _add_note(self, name: str, note: str) -> None:
        self.notes |= {f"{name}: {note}": None} if note else {}
