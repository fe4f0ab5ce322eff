"""The sub-agent's two tools, Read and Grep: only for the one file, in bounded pieces, while its window has room."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import permutations
from time import perf_counter
from typing import Annotated, Any, TypeVar

import anyio
import msgspec
from msgspec import Meta, Struct

from overspill import reading
from overspill.errors import BadRequest
from overspill.extraction.chunks import Span
from overspill.extraction.document import Inspection
from overspill.extraction.inquiry import Inquiry, run_in_thread
from overspill.extraction.numbered import NumberedLine, align_lines
from overspill.extraction.prompting import EMPTY_ANSWER, FILE_TOOLS, frame_data
from overspill.models.protocol import Message, Request, Response
from overspill.models.written import find_written_calls
from overspill.reading import Bound
from overspill.reading.positions import View
from overspill.schema.arguments import describe_arguments
from overspill.text import tokens
from overspill.text.encoding import decode
from overspill.text.humanize import quote_line
from overspill.types import ToolCall

OTHER_FILE = "There is no file {file!r} here. The only file is {handle!r}; use that name exactly."
BAD_ARGUMENTS = "Invalid arguments for {tool}: {error}."
READ_HEAD = "Lines {first}-{last} of {total}."
READ_ON = "There is more: Read with {unit}={next}."
READ_MORE = "There is more: Read(file={handle!r}, {unit}={next})."
GREP_HEAD = "{hits} of {total}{more} matching lines."
GREP_WORDS = "No line matches the pattern as a whole. Lines with all of its words:"
GREP_NONE = "No line matches{where}."
GREP_NEAREST = "Instead, the passages that are nearest to the pattern and the question:"
GREP_FROM = " from byte {start} on"
GREP_MORE = "There is more: the same Grep with from={next}."
NO_ROOM = "Your context window is full: nothing more can be read. Give your final report now."
LOOK_FIRST = "You have not looked into the file. Call Grep or Read now, and report when you have seen what it says."
NOT_LOOKED = "reported without having looked into the output."

_WORD = re.compile(r"\w+(?:[.:/@_-]+\w+)*")
_LINE_END = re.compile(r"\r\n|\n|\r")
_MAX_PERMUTED_WORDS = 3
_MAX_PATTERN_CHARS = 1000
_NEAREST_TOKENS = 600
_MAX_CITED_BYTES = 4000
_DEFAULT_READ_LINES = 200
_MIN_ANSWER_BYTES = 512
_TOKENS_PER_CALL = 300  # a call and what the model says around it, roughly


def _integer(least: int, description: str) -> Meta:
    return Meta(ge=least, description=description)


class _Args(Struct, frozen=True, kw_only=True):
    file: Annotated[str | None, Meta(description="The filename: the handle, exactly as given")] = None


class _Read(_Args, frozen=True):
    offset: Annotated[int, _integer(1, "The first line; 1 if not given")] = 1
    limit: Annotated[int, _integer(1, f"How many lines; {_DEFAULT_READ_LINES} if not given")] = _DEFAULT_READ_LINES
    byte: Annotated[int, _integer(0, "Go on inside a very long line, from this byte, instead of `offset`")] | None = None


class _Grep(_Args, frozen=True, rename={"from_": "from"}):
    pattern: str
    context: Annotated[int, _integer(0, "Lines shown before and after each match; 2 if not given")] = 2
    ignore_case: bool = False
    from_: Annotated[int, _integer(0, "Go on searching from this byte")] = 0


_TOOLS: Mapping[str, tuple[str, type[_Args]]] = {
    "Read": ("Lines of the file, from line `offset` on", _Read),
    "Grep": ("Lines of the file that match a regular expression (RE2), with line numbers and context", _Grep),
}


A = TypeVar("A", bound=_Args)


class FileTools:
    def __init__(self, inquiry: Inquiry, nonce: str, room: int) -> None:
        self.has_seen_text = False
        self._has_looked = False
        self._has_insisted = False
        self._is_plain = inquiry.policy.contract == "plain"
        self._inquiry = inquiry
        self._document = inquiry.document
        self._nonce = nonce
        self._view = View(inquiry.document.reader)
        self._room = room
        self._turn = anyio.Lock()

    @staticmethod
    def define(*, has_file: bool) -> tuple[dict[str, Any], ...]:
        """`has_file`: the calls name the file, although there is only one."""
        return tuple(_define(name, *tool, has_file=has_file) for name, tool in _TOOLS.items())

    def insist_on_looking(self) -> str:
        """Small models tend to report before they have looked, mostly that there is nothing."""
        if self._has_looked:
            return ""
        self._has_insisted = True
        return LOOK_FIRST

    def find(self, numbers: Iterable[int]) -> list[NumberedLine]:
        """The lines of the file with these numbers. One too long to be a source is left out."""
        lines: list[NumberedLine] = []
        for number in numbers:
            start, end = self._view.line_span(number, number) if number else (0, 0)
            data = self._document.reader.read(start, min(end, start + _MAX_CITED_BYTES + 1)).rstrip(b"\r\n")
            if data.strip() and end - start <= _MAX_CITED_BYTES:
                lines.append(NumberedLine(Span(start, start + len(data)), decode(data)))
        return lines

    async def ask(self, request: Request) -> Response:
        """Ask again for a turn that is neither a call nor a report."""
        return await self._inquiry.model.ask(request, lambda response: self._describe_mistake(request, response))

    def _describe_mistake(self, request: Request, response: Response) -> str:
        if request.tool_choice != "none" and find_written_calls(response, FILE_TOOLS).calls:
            return ""
        if self._has_looked:
            return self._inquiry.describe_missing_report(response, self._nonce)
        if not response.text.strip():
            return EMPTY_ANSWER
        return NOT_LOOKED if self._has_insisted or request.tool_choice == "none" else ""  # it is told to look first

    async def answer(self, call: ToolCall) -> Message:
        async with self._turn:  # a view serves one call at a time
            started = perf_counter()
            answer = await self._answer(call)
            if self._inquiry.on_inspection:
                latency = round((perf_counter() - started) * 1000)
                self._inquiry.on_inspection(Inspection(call.name, not answer.is_error, latency, len(answer.text)))
            return answer

    async def _answer(self, call: ToolCall) -> Message:
        bound = Bound(min(self._inquiry.policy.answer_bytes, self._room - _TOKENS_PER_CALL))
        if bound.bytes < _MIN_ANSWER_BYTES:
            return Message("tool", NO_ROOM, call_id=call.id, is_error=True)
        try:
            text = await run_in_thread(lambda: self._perform(call.name, call.args, bound))
        except BadRequest as error:
            return Message("tool", str(error), call_id=call.id, is_error=True)
        self._has_looked = True
        text = self._inquiry.prompts.remind(text)
        self._room -= self._inquiry.count_tokens(text) + _TOKENS_PER_CALL
        return Message("tool", text, call_id=call.id)

    def _perform(self, tool: str, args: Mapping[str, Any], bound: Bound) -> str:
        if tool == "Read":
            return self._read(self._arguments(tool, _Read, args), bound)
        return self._grep(self._arguments(tool, _Grep, args), bound)

    def _arguments(self, tool: str, kind: type[A], args: Mapping[str, Any]) -> A:
        given = {name: value for name, value in args.items() if value is not None}
        try:
            asked = msgspec.convert(given, kind, strict=False)
        except msgspec.ValidationError as error:
            raise BadRequest(BAD_ARGUMENTS.format(tool=tool, error=quote_line(str(error)))) from None
        if asked.file != self._document.handle and not (self._is_plain and asked.file is None):
            raise BadRequest(OTHER_FILE.format(file=(asked.file or "")[:200], handle=self._document.handle))
        return asked

    def _read(self, asked: _Read, bound: Bound) -> str:
        reader, view = self._document.reader, self._view
        if asked.byte is None:
            shown = reading.lines(reader, view, asked.offset, asked.offset + asked.limit - 1, bound)
        else:
            shown = reading.bytes_range(reader, view, asked.byte, None, bound)
        lines = [READ_HEAD.format(first=shown.first_line, last=shown.last_line, total=view.lines)]
        text = _number_lines(shown.text, shown.first_line) if self._is_plain else shown.text
        lines.append(self._frame(text))
        if shown.end_byte < view.bytes:
            inside = shown.next is not None and shown.next.unit == "bytes"
            unit, following = ("byte", shown.end_byte) if inside else ("offset", shown.last_line + 1)
            more = READ_ON if self._is_plain else READ_MORE
            lines.append(more.format(handle=self._document.handle, unit=unit, next=following))
        return "\n".join(lines)

    def _grep(self, asked: _Grep, bound: Bound) -> str:
        options: dict[str, Any] = {"context": asked.context, "ignore_case": asked.ignore_case, "start_byte": asked.from_}
        found = reading.grep(self._document.reader, self._view, asked.pattern, bound, **options)
        if found.hits:
            return self._show_hits(found)
        none = GREP_NONE.format(where=GREP_FROM.format(start=asked.from_) if asked.from_ else "")
        if not self._is_plain:
            return none
        return self._grep_words(asked, bound) or self._find_nearest(asked.pattern, bound, none)

    def _grep_words(self, asked: _Grep, bound: Bound) -> str:
        """Lines with all words of a pattern, in any order: models grep for whole phrases."""
        words = _WORD.findall(asked.pattern)
        if not 1 < len(words) <= _MAX_PERMUTED_WORDS:
            return ""
        pattern = "|".join(".*".join(map(re.escape, order)) for order in permutations(words))
        options: dict[str, Any] = {"context": asked.context, "ignore_case": True, "start_byte": asked.from_}
        found = reading.grep(self._document.reader, self._view, pattern, bound, **options)
        return f"{GREP_WORDS}\n{self._show_hits(found)}" if found.hits else ""

    def _show_hits(self, found: reading.Grep) -> str:
        lines = [GREP_HEAD.format(hits=found.hits, total=found.total, more="" if found.exact else " or more")]
        lines.append(self._frame(found.text))
        if found.next is not None:
            lines.append(GREP_MORE.format(next=found.next))
        return "\n".join(lines)

    def _find_nearest(self, pattern: str, bound: Bound, none: str) -> str:
        engine, document = self._inquiry.engine, self._document
        if engine is None:
            return none
        question = f"{' '.join(_WORD.findall(pattern[:_MAX_PATTERN_CHARS]))} {self._inquiry.query}"
        selection = engine(document, question, min(_NEAREST_TOKENS, bound.bytes // tokens.CHARS_PER_TOKEN))
        rows = [
            f"{self._view.line_at(line.span.start)}| {line.text}"
            for each in selection.excerpts
            for line in align_lines(each.shown, document.reader.read(each.start_byte, each.end_byte), each.start_byte)
        ]
        return "\n".join([none, GREP_NEAREST, self._frame("\n".join(rows))]) if rows else none

    def _frame(self, text: str) -> str:
        self.has_seen_text = True
        return frame_data(text, self._nonce)


def _define(name: str, description: str, arguments: type[_Args], *, has_file: bool) -> dict[str, Any]:
    schema, first = describe_arguments(arguments), ["file"] if has_file else []
    properties = {key: schema["properties"][key] for key in (*first, *schema["properties"]) if has_file or key != "file"}
    parameters = {"type": "object", "required": [*first, *schema["required"]], "properties": properties}
    return {"name": name, "description": description, "parameters": parameters}


def _number_lines(text: str, first: int) -> str:
    return "\n".join(f"{number}| {line}" for number, line in enumerate(_LINE_END.split(text.rstrip("\r\n")), first))
