"""A sub-agent searches the stored file itself, with Read and Grep, for a limited number of turns, and then reports."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Annotated, Any, TypeVar

import anyio
import msgspec
from msgspec import Meta, Struct

from overspill import reading
from overspill.errors import BadRequest, OverspillError
from overspill.extraction import findings, wrapper
from overspill.extraction.document import ExtractionFailed, Inspection, limit_output
from overspill.extraction.inquiry import EMPTY_ANSWER, Inquiry, describe_missing_report, run_in_thread
from overspill.extraction.prompting import frame_data
from overspill.extraction.provenance import Quote, locate
from overspill.models.conversation import converse, run_in_parallel
from overspill.models.protocol import Message, Request, Response
from overspill.models.written import find_written_calls
from overspill.reading import Bound
from overspill.reading.positions import View
from overspill.types import Extraction, ToolCall

SEARCHED = "Searched: the output of {tool} ({bytes:,} bytes, {lines:,} lines), with Read and Grep."
START = "Begin. The file is {handle}."
LAST_TURN = "This is your last turn, and there are no more tools. Give your final report in its wrapper now."
OTHER_FILE = "There is no file {file!r} here. The only file is {handle!r}; use that name exactly."
BAD_ARGUMENTS = "Invalid arguments for {tool}: {error}."
READ_HEAD = "Lines {first}-{last} of {total}."
READ_MORE = "There is more: Read(file={handle!r}, {unit}={next})."
GREP_HEAD = "{hits} of {total}{more} matching lines."
GREP_NONE = "No line matches{where}."
GREP_FROM = " from byte {start} on"
GREP_MORE = "There is more: the same Grep with from={next}."
NO_ROOM = "Your context window is full: nothing more can be read. Give your final report now."
LOOK_FIRST = "You have not looked into the file. Call Grep or Read now, and report when you have seen what it says."
NOT_LOOKED = "reported without having looked into the output."
OUT_OF_TIME = "The sub-agent had not finished after {seconds:g} s."

_DEFAULT_READ_LINES = 200
_MIN_ANSWER_BYTES = 512
_TOKENS_PER_CALL = 300  # a call and what the model says around it, roughly

_NonNegative = Annotated[int, Meta(ge=0)]


class _Args(Struct, frozen=True):
    file: str


class _Read(_Args, frozen=True):
    offset: Annotated[int, Meta(ge=1)] = 1
    limit: Annotated[int, Meta(ge=1)] = _DEFAULT_READ_LINES
    byte: _NonNegative | None = None


class _Grep(_Args, frozen=True, rename={"from_": "from"}):
    pattern: str
    context: _NonNegative = 2
    ignore_case: bool = False
    from_: _NonNegative = 0


A = TypeVar("A", bound=_Args)

_FILE = {"type": "string", "description": "The filename: the handle, exactly as given"}

TOOLS: tuple[dict[str, Any], ...] = (
    {
        "name": "Read",
        "description": "Lines of the file, from line `offset` on",
        "parameters": {
            "type": "object",
            "required": ["file"],
            "properties": {
                "file": _FILE,
                "offset": {"type": "integer", "minimum": 1, "description": "The first line; 1 if not given"},
                "limit": {"type": "integer", "minimum": 1, "description": f"How many lines; {_DEFAULT_READ_LINES} if not given"},
                "byte": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Go on inside a very long line, from this byte, instead of `offset`",
                },
            },
        },
    },
    {
        "name": "Grep",
        "description": "Lines of the file that match a regular expression (RE2), with line numbers and context",
        "parameters": {
            "type": "object",
            "required": ["file", "pattern"],
            "properties": {
                "file": _FILE,
                "pattern": {"type": "string"},
                "context": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Lines shown before and after each match; 2 if not given",
                },
                "ignore_case": {"type": "boolean"},
                "from": {"type": "integer", "minimum": 0, "description": "Go on searching from this byte"},
            },
        },
    },
)


async def extract_read_grep(inquiry: Inquiry) -> Extraction:
    document, nonce = inquiry.document, wrapper.new_nonce()
    request = Request(
        inquiry.prompts.build_explore_prompt(nonce),
        (Message("user", START.format(handle=document.handle)),),
        TOOLS,
        max_output_tokens=limit_output(inquiry.model),
    )
    tools = _Tools(inquiry, nonce, inquiry.measure_room(request))
    response = None
    with anyio.CancelScope(deadline=inquiry.deadline):
        try:
            response = await converse(
                tools,
                request,
                run_in_parallel(tools.answer),
                max_turns=inquiry.policy.max_turns,
                final_hint=LAST_TURN,
                insist=tools.insist_on_looking,
            )
        except OverspillError as error:
            raise ExtractionFailed(str(error)) from error
    if response is None:
        raise ExtractionFailed(OUT_OF_TIME.format(seconds=inquiry.policy.within_secs))
    report = inquiry.parse_report(response, nonce)
    quotes = [Quote(text) for text in report.quotes]
    located = await run_in_thread(lambda: locate(document.reader, quotes))
    extraction = findings.build_extraction(
        inquiry,
        report,
        located,
        (),
        strategy="read-grep",
        searched_where=SEARCHED.format(tool=document.tool, bytes=document.size.bytes, lines=document.size.lines),
    )
    inquiry.cache.results[inquiry.key] = extraction
    return extraction


class _Tools:
    """Answers the sub-agent's calls: only about the one file, in bounded pieces, while its window has room."""

    def __init__(self, inquiry: Inquiry, nonce: str, room: int) -> None:
        self._has_looked = False
        self._inquiry = inquiry
        self._document = inquiry.document
        self._nonce = nonce
        self._view = View(inquiry.document.reader)
        self._room = room
        self._turn = anyio.Lock()

    def insist_on_looking(self) -> str:
        """Small models tend to report before they have looked, mostly that there is nothing."""
        return "" if self._has_looked else LOOK_FIRST

    async def ask(self, request: Request) -> Response:
        """Ask again for a turn that is neither a call nor a report."""
        return await self._inquiry.model.ask(request, lambda response: self._describe_mistake(request, response))

    def _describe_mistake(self, request: Request, response: Response) -> str:
        if request.tool_choice != "none" and find_written_calls(response, [tool["name"] for tool in TOOLS]).calls:
            return ""
        if self._has_looked:
            return describe_missing_report(response, self._nonce)
        if not response.text.strip():
            return EMPTY_ANSWER
        return "" if request.tool_choice == "auto" else NOT_LOOKED  # it is told to look first

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
            raise BadRequest(BAD_ARGUMENTS.format(tool=tool, error=error)) from None
        if asked.file != self._document.handle:
            raise BadRequest(OTHER_FILE.format(file=asked.file[:200], handle=self._document.handle))
        return asked

    def _read(self, asked: _Read, bound: Bound) -> str:
        reader, view = self._document.reader, self._view
        if asked.byte is None:
            shown = reading.lines(reader, view, asked.offset, asked.offset + asked.limit - 1, bound)
        else:
            shown = reading.bytes_range(reader, view, asked.byte, None, bound)
        lines = [READ_HEAD.format(first=shown.first_line, last=shown.last_line, total=view.lines)]
        lines.append(frame_data(shown.text, self._nonce))
        if shown.end_byte < view.bytes:
            inside = shown.next is not None and shown.next.unit == "bytes"
            unit, following = ("byte", shown.end_byte) if inside else ("offset", shown.last_line + 1)
            lines.append(READ_MORE.format(handle=self._document.handle, unit=unit, next=following))
        return "\n".join(lines)

    def _grep(self, asked: _Grep, bound: Bound) -> str:
        reader, view = self._document.reader, self._view
        options: dict[str, Any] = {"context": asked.context, "ignore_case": asked.ignore_case, "start_byte": asked.from_}
        found = reading.grep(reader, view, asked.pattern, bound, **options)
        if not found.hits:
            return GREP_NONE.format(where=GREP_FROM.format(start=asked.from_) if asked.from_ else "")
        lines = [GREP_HEAD.format(hits=found.hits, total=found.total, more="" if found.exact else " or more")]
        lines.append(frame_data(found.text, self._nonce))
        if found.next is not None:
            lines.append(GREP_MORE.format(next=found.next))
        return "\n".join(lines)
