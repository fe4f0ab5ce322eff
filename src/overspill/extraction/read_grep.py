"""A sub-agent searches the stored file itself, with Read and Grep, for a limited number of turns, and then reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import permutations
from time import perf_counter
from typing import Annotated, Any, TypeVar

import anyio
import msgspec
from msgspec import Meta, Struct

from overspill import reading
from overspill.errors import BadRequest, OverspillError
from overspill.extraction import wrapper
from overspill.extraction.chunks import NumberedLine, Span, align_lines
from overspill.extraction.document import ExtractionFailed, limit_output
from overspill.extraction.findings import conclude_alone
from overspill.extraction.inquiry import Inquiry, run_in_thread
from overspill.extraction.prompting import EMPTY_ANSWER, FILE_TOOLS, frame_data
from overspill.models.conversation import converse, run_in_parallel
from overspill.models.protocol import Message, Request, Response
from overspill.models.written import find_written_calls
from overspill.reading import Bound
from overspill.reading.positions import View
from overspill.schema.arguments import describe_arguments
from overspill.text import tokens
from overspill.text.encoding import decode
from overspill.text.humanize import quote_line
from overspill.text.lenient_json import ready
from overspill.text.regex import escape, regex
from overspill.types import Extraction, ToolCall

_WORD = regex(r"\w+(?:[.:/@_-]+\w+)*")
_LINE_END = regex(r"\r\n|\n|\r")
_MAX_PERMUTED_WORDS = 3
_MAX_PATTERN_CHARS = 1000
_NEAREST_TOKENS = 600
_MAX_CITED_BYTES = 4000
_MIN_ANSWER_BYTES = 512
_TOKENS_PER_CALL = 300  # roughly what a call and the words around it take


class _Args(Struct, frozen=True, kw_only=True):
    file: Annotated[str | None, Meta(description="The filename: the handle, exactly as given")] = None


class _Read(_Args, frozen=True):
    offset: Annotated[int, Meta(ge=1, description="The first line; 1 if not given")] = 1
    limit: Annotated[int, Meta(ge=1, description="How many lines; 200 if not given")] = 200
    byte: Annotated[int, Meta(ge=0, description="Go on inside a very long line, from this byte, instead of `offset`")] | None = (
        None
    )


class _Grep(_Args, frozen=True, rename={"from_": "from"}):
    pattern: str
    context: Annotated[int, Meta(ge=0, description="Lines shown before and after each match; 2 if not given")] = 2
    ignore_case: bool = False
    from_: Annotated[int, Meta(ge=0, description="Go on searching from this byte")] = 0


_TOOLS: Mapping[str, tuple[str, type[_Args]]] = {
    "Read": ("Lines of the file, from line `offset` on", _Read),
    "Grep": ("Lines of the file that match a regular expression (RE2), with line numbers and context", _Grep),
}


A = TypeVar("A", bound=_Args)


class FileTools:
    """The sub-agent's two tools: only for the one file, in bounded pieces, while its window has room."""

    def __init__(self, inquiry: Inquiry, nonce: str, room: int) -> None:
        self.has_seen_text = False
        self._has_looked = False
        self._has_insisted = False
        self._inquiry = inquiry
        self._document = inquiry.document
        self._nonce = nonce
        self._view = View(inquiry.document.reader)
        self._room = room
        self._turn = anyio.Lock()

    @staticmethod
    def define(*, has_file: bool) -> tuple[dict[str, Any], ...]:
        """`has_file`: the calls name the file, although there is only one."""
        defined: list[dict[str, Any]] = []
        for name, (description, arguments) in _TOOLS.items():
            schema, first = describe_arguments(arguments), ["file"] if has_file else []
            names = [*first, *(key for key in schema["properties"] if key != "file")]
            properties = {key: schema["properties"][key] for key in names}
            parameters = {"type": "object", "required": [*first, *schema["required"]], "properties": properties}
            defined.append({"name": name, "description": description, "parameters": parameters})
        return tuple(defined)

    def insist_on_looking(self) -> str:
        """A reminder for a model that reports before it has looked, as small ones do; empty if it has looked."""
        if self._has_looked:
            return ""
        self._has_insisted = True
        return "You have not looked into the file. Call Grep or Read now, and report when you have seen what it says."

    def find(self, numbers: Iterable[int]) -> list[NumberedLine]:
        """The lines of the file with these numbers, without those too long to be a source."""
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
        if not self._has_insisted and request.tool_choice != "none":  # it must use a tool first
            return ""
        return "reported without having looked into the output."

    async def answer(self, call: ToolCall) -> Message:
        async with self._turn:  # a view serves one call at a time
            started = perf_counter()
            answer = await self._answer(call)
            if self._inquiry.on_inspection:
                latency = round((perf_counter() - started) * 1000)
                self._inquiry.on_inspection(call.name, not answer.is_error, latency, len(answer.text))
            return answer

    async def _answer(self, call: ToolCall) -> Message:
        bound = Bound(min(self._inquiry.policy.answer_bytes, self._room - _TOKENS_PER_CALL))
        if bound.bytes < _MIN_ANSWER_BYTES:
            text = "Your context window is full: nothing more can be read. Give your final report now."
            return Message("tool", text, call_id=call.id, is_error=True)
        try:
            if call.name == "Read":
                text = await run_in_thread(lambda: self._read(self._arguments("Read", _Read, call.args), bound))
            else:
                text = await run_in_thread(lambda: self._grep(self._arguments("Grep", _Grep, call.args), bound))
        except BadRequest as error:
            return Message("tool", str(error), call_id=call.id, is_error=True)
        self._has_looked = True
        text = self._inquiry.prompts.remind(text)
        self._room -= self._inquiry.count_tokens(text) + _TOKENS_PER_CALL
        return Message("tool", text, call_id=call.id)

    def _arguments(self, tool: str, kind: type[A], args: Mapping[str, Any]) -> A:
        given = {name: value for name, value in args.items() if value is not None}
        try:
            asked = msgspec.convert(given, ready(kind), strict=False)
        except msgspec.ValidationError as error:
            raise BadRequest(f"Invalid arguments for {tool}: {quote_line(str(error))}.") from None
        file, handle = asked.file, self._document.handle
        if file != handle and not (self._inquiry.is_plain and file is None):
            raise BadRequest(f"There is no file {(file or '')[:200]!r} here. The only file is {handle!r}; use that name exactly.")
        return asked

    def _read(self, asked: _Read, bound: Bound) -> str:
        reader, view = self._document.reader, self._view
        if asked.byte is None:
            shown = reading.lines(reader, view, asked.offset, asked.offset + asked.limit - 1, bound)
        else:
            shown = reading.bytes_range(reader, view, asked.byte, None, bound)
        text = shown.text
        if self._inquiry.is_plain:
            rows = _LINE_END.split(text.rstrip("\r\n"))
            text = "\n".join(f"{number}| {row}" for number, row in enumerate(rows, shown.first_line))
        lines = [f"Lines {shown.first_line}-{shown.last_line} of {view.lines}.", self._frame(text)]
        if shown.end_byte < view.bytes:
            inside = shown.next is not None and shown.next.unit == "bytes"
            place = f"byte={shown.end_byte}" if inside else f"offset={shown.last_line + 1}"
            call = f"Read with {place}" if self._inquiry.is_plain else f"Read(file={self._document.handle!r}, {place})"
            lines.append(f"There is more: {call}.")
        return "\n".join(lines)

    def _grep(self, asked: _Grep, bound: Bound) -> str:
        if hits := self._find_lines(asked, asked.pattern, bound, ignore_case=asked.ignore_case):
            return hits
        none = f"No line matches{f' from byte {asked.from_} on' if asked.from_ else ''}."
        if not self._inquiry.is_plain:
            return none
        words = _WORD.findall(asked.pattern)  # search for the words in any order, because models grep for whole phrases
        if 1 < len(words) <= _MAX_PERMUTED_WORDS:
            pattern = "|".join(".*".join(map(escape, order)) for order in permutations(words))
            if hits := self._find_lines(asked, pattern, bound, ignore_case=True):
                return f"No line matches the pattern as a whole. Lines with all of its words:\n{hits}"
        return self._find_nearest(asked.pattern, bound, none)

    def _find_lines(self, asked: _Grep, pattern: str, bound: Bound, *, ignore_case: bool) -> str:
        options: dict[str, Any] = {"context": asked.context, "ignore_case": ignore_case, "start_byte": asked.from_}
        found = reading.grep(self._document.reader, self._view, pattern, bound, **options)
        if not found.hits:
            return ""
        head = f"{found.hits} of {found.total}{'' if found.exact else ' or more'} matching lines."
        more = [] if found.next is None else [f"There is more: the same Grep with from={found.next}."]
        return "\n".join([head, self._frame(found.text), *more])

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
        head = f"{none}\nInstead, the passages that are nearest to the pattern and the question:"
        return "\n".join([head, self._frame("\n".join(rows))]) if rows else none

    def _frame(self, text: str) -> str:
        self.has_seen_text = True
        return frame_data(text, self._nonce)


async def extract_read_grep(inquiry: Inquiry) -> Extraction:
    document, nonce = inquiry.document, wrapper.new_nonce()
    is_plain = inquiry.is_plain
    request = Request(
        inquiry.prompts.build_explore_prompt(nonce),
        (Message("user", inquiry.prompts.remind(f"Begin. The file is {document.handle}.")),),
        FileTools.define(has_file=not is_plain),
        tool_choice="required",
        max_output_tokens=limit_output(inquiry.model),
    )
    last = "This is your last turn, and there are no more tools."
    tools = FileTools(inquiry, nonce, inquiry.measure_room(request))
    response = None
    with anyio.CancelScope(deadline=inquiry.deadline):
        try:
            response = await converse(
                tools,
                request,
                partial(run_in_parallel, tools.answer),
                max_turns=inquiry.policy.max_turns,
                final_hint=inquiry.prompts.remind(f"{last} Answer now.")
                if is_plain
                else f"{last} Give your final report in its wrapper now.",
                insist=tools.insist_on_looking,
            )
        except OverspillError as error:
            raise ExtractionFailed(str(error)) from error
    if response is None:
        raise ExtractionFailed(f"The sub-agent had not finished after {inquiry.policy.answer_within_secs:g} s.")
    if is_plain and not tools.has_seen_text:
        raise ExtractionFailed("The sub-agent reported without having seen anything of the output.")
    report = await run_in_thread(lambda: inquiry.parse_report(response, nonce, tools if is_plain else None))
    size = f"{document.size.bytes:,} bytes, {document.size.lines:,} lines"
    where = f"Searched: the output of {document.tool} ({size}), with Read and Grep."
    return await conclude_alone(inquiry, report, None, [Span(0, document.reader.size)], where)
