"""Fill in the prompts. Values are inserted once and never parsed again, so nothing in them can act as a template."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from overspill.extraction import report, wrapper
from overspill.extraction.chunks import CitableLines, Span
from overspill.extraction.document import Document, ModelMode, Policy
from overspill.extraction.report import NOTHING, ModelReport
from overspill.models.protocol import Message, Request, Response
from overspill.models.written import find_written_calls
from overspill.text.encoding import clean
from overspill.text.regex import regex

_FIELD = regex(r"\{\{([a-z_]+)\}\}")
_FOLDER = Path(__file__).parent / "prompts"
_MAX_ARGS_CHARS = 4000

FILE_TOOLS = ("Read", "Grep")
"""The tools of a sub-agent. A call that it wrote as text does not count as an answer."""
NO_REPORT = "gave no final report."
EMPTY_ANSWER = "answered nothing."
TOOL_CALL = "called a tool instead of giving its final report."


@cache
def hash_prompts() -> str:
    """A version that changes with any of the prompts."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(_FOLDER.rglob("*.md")))).hexdigest()[:16]


def fill(name: str, **values: object) -> str:
    return _FIELD.sub(lambda field: str(values[field[1]]), load_template(name))


def frame_data(text: str, nonce: str) -> str:
    """Text between marks with a nonce. The nonce is newer than the text, so the text cannot end its block."""
    return f"[data {nonce}]\n{clean(text)}\n[end of data {nonce}]"


class _Prompts:
    def __init__(self, document: Document, query: str, mode: ModelMode, policy: Policy) -> None:
        self._document, self._policy = document, policy
        self._query = clean(query)
        self._tool = {"tool": " ".join(clean(document.tool).split()), "args": shorten_args(document.args_json)}
        self._form = "snippets" if mode == "snippets" else "answer"


class WrappedPrompts(_Prompts):
    """Prompts of the manuals' contract: instructions first, and the report in a wrapper.

    Each request of an extraction has its own nonce, so no report can end the block it is merged in.
    """

    def build_chunk_request(self, text: str, index: int, total: int, overlap: int, nonce: str) -> Request:
        """The request for one chunk. `index` counts from 0; the prompt counts from 1."""
        system = self._fill("map", nonce, index=index + 1, total=total, overlap=overlap, **self._describe_size())
        return Request(system, (Message("user", frame_data(text, nonce)),), tool_choice="none")

    def build_merge_request(self, outputs: str, count: int, total: int, nonce: str) -> Request:
        silent = "In the others nothing relevant was found, or they were not read."
        rest = "That is all of them." if count == total else silent
        system = self._fill("reduce", nonce, coverage=f"They come from {count} of {total} chunks. {rest}")
        return Request(system, (Message("user", frame_data(outputs, nonce)),), tool_choice="none")

    def build_explore_prompt(self, nonce: str) -> str:
        return self._fill("read_grep", nonce, handle=self._document.handle, turns=self._policy.max_turns, **self._describe_size())

    def remind(self, found: str) -> str:
        """The result of a tool of the sub-agent, with a reminder of the rules."""
        return found

    def read_report(self, response: Response, nonce: str, lines: CitableLines | None) -> ModelReport:
        """The report in an answer that `describe_missing_report` accepts."""
        content = wrapper.unwrap(response.text, nonce) or ""
        parsed = report.parse(content, response.model)
        if not parsed.quotes and (after := report.parse(wrapper.find_text_after(response.text, nonce)).quotes):
            return replace(parsed, quotes=after)
        return parsed

    def describe_missing_report(self, response: Response, nonce: str) -> str:
        """Why an answer holds no report; empty if it holds one."""
        if wrapper.unwrap(response.text, nonce) is not None:
            return ""
        return TOOL_CALL if response.calls else NO_REPORT if response.text.strip() else EMPTY_ANSWER

    def _fill(self, name: str, nonce: str, **values: object) -> str:
        wrapping = {"opening": wrapper.opening_tag(nonce), "closing": wrapper.closing_tag(nonce)}
        form = fill(self._form, max_tokens=self._policy.max_tokens, **wrapping)
        return fill(name, **self._tool, query=self._query, **values, nonce=nonce, format=form)

    def _describe_size(self) -> dict[str, int]:
        size = self._document.size
        return {"bytes": size.bytes, "lines": size.lines, "tokens": size.tokens}


def name_chunk(index: int, span: Span) -> str:
    return f"CHUNK {index + 1} (bytes {span.start}-{span.end})"


def shorten_args(args_json: str) -> str:
    # A raw line end in JSON is just white space. On one line, arguments cannot look like a section of the prompt.
    line = " ".join(clean(args_json).splitlines())
    if len(line) <= _MAX_ARGS_CHARS:
        return line
    return f"{line[:_MAX_ARGS_CHARS]} … ({len(line) - _MAX_ARGS_CHARS:,} more characters of the arguments are not shown)"


@cache
def load_template(name: str) -> str:
    return (_FOLDER / f"{name}.md").read_text("utf-8").strip()


OR_NOTHING = f"If no line has to do with the question, write {NOTHING} instead."


class PlainPrompts(_Prompts):
    """Prompts for plain models, with the same methods as `WrappedPrompts`."""

    def __init__(self, document: Document, query: str, mode: ModelMode, policy: Policy) -> None:
        super().__init__(document, query, mode, policy)
        self._returned = "what the tool {tool} returned for {args}".format(**self._tool)
        self._task = load_template(f"plain/{self._form}")

    def build_focused_request(self, text: str, nonce: str) -> Request:
        # Does not say what to write when nothing is found: small models would write that every time.
        return self._build(text, f"These are passages from {self._returned}.", self._task, nonce)

    def build_chunk_request(self, text: str, index: int, total: int, overlap: int, nonce: str) -> Request:
        del overlap
        if total == 1:
            return self._build(text, f"This is {self._returned}.", self._task, nonce)
        origin = f"This is part {index + 1} of {total} of {self._returned}."
        return self._build(text, origin, f"{self._task}\n{OR_NOTHING}", nonce)

    def build_merge_request(self, outputs: str, count: int, total: int, nonce: str) -> Request:
        origin = (
            f"These are answers from {count} of {total} parts of {self._returned}, with the lines they rest on. "
            "Put together what belongs together, say each thing once, and say so where they contradict each other."
        )
        return self._build(outputs, origin, self._task, nonce)

    def build_explore_prompt(self, nonce: str) -> str:
        size, handle, turns = self._document.size, self._document.handle, self._policy.max_turns
        values = {**self._tool, "handle": handle, "turns": turns, "bytes": size.bytes, "lines": size.lines, "nonce": nonce}
        return fill("plain/explore", **values)

    def remind(self, found: str) -> str:
        return fill("plain/explored", found=found, query=self._query, task=self._task)

    def read_report(self, response: Response, nonce: str, lines: CitableLines | None) -> ModelReport:
        return report.parse(
            wrapper.strip(response.text, nonce),
            response.model,
            has_numbers=lines is not None,
            only_sources=self._form == "snippets",
            is_echo=self._is_echo,
        )

    def describe_missing_report(self, response: Response, nonce: str) -> str:
        if find_written_calls(response, FILE_TOOLS).calls:
            return TOOL_CALL
        return "" if wrapper.strip(response.text, nonce) else EMPTY_ANSWER

    def _build(self, text: str, origin: str, task: str, nonce: str) -> Request:
        asked = fill("plain/ask", data=frame_data(text, nonce), origin=origin, query=self._query, task=task)
        return Request(fill("plain/system", nonce=nonce), (Message("user", asked),), tool_choice="none")

    def _is_echo(self, line: str) -> bool:
        plain = line.strip().strip("*#_-> \t").casefold()
        return (
            plain in _load_instructions()
            or plain.startswith(("[data ", "[end of data "))
            or (len(plain) > 1 and plain == self._query.strip().casefold())
        )


Prompts: TypeAlias = WrappedPrompts | PlainPrompts


@cache
def _load_instructions() -> frozenset[str]:
    """The lines and sentences that a model may repeat."""
    texts = [*(load_template(f"plain/{name}") for name in ("answer", "snippets")), OR_NOTHING, "QUESTION", "ANSWER:", "Answer"]
    lines = [line for text in texts for line in text.splitlines()]
    return frozenset(line.strip("*#_-> \t").casefold() for line in lines)
