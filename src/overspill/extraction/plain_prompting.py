"""The default preset's contract: the data first, then the question and what to write; any text is the report."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

from overspill.extraction import report, wrapper
from overspill.extraction.document import Document, ModelMode, Policy
from overspill.extraction.numbered import CitableLines
from overspill.extraction.prompting import EMPTY_ANSWER, TOOL_CALL, WrappedPrompts, fill, frame_data, load_template, shorten_args
from overspill.extraction.report import NOTHING, ModelReport
from overspill.models.protocol import Message, Request, Response
from overspill.text.encoding import clean

WHOLE = "This is what the tool {tool} returned for {args}."
PART = "This is part {index} of {total} of what the tool {tool} returned for {args}."
PASSAGES = "These are passages from what the tool {tool} returned for {args}."
FINDINGS = (
    "These are answers from {outputs} of {total} parts of what the tool {tool} returned for {args}, with the lines they rest on. "
    "Put together what belongs together, say each thing once, and say so where they contradict each other."
)
OR_NOTHING = f"If no line has to do with the question, write {NOTHING} instead."
_TASKS = ("answer_numbers", "answer_quotes", "snippets_numbers", "snippets_quotes")


class PlainPrompts:
    """Its methods are those of `WrappedPrompts`."""

    def __init__(self, document: Document, query: str, mode: ModelMode, policy: Policy) -> None:
        self._document = document
        self._policy = policy
        self._has_numbers = policy.citing == "numbers"
        self._only_sources = mode == "snippets"
        self._query = clean(query)
        self._tool = {"tool": " ".join(clean(document.tool).split()), "args": shorten_args(document.args_json)}
        self._task = load_template(f"plain/{'snippets' if self._only_sources else 'answer'}_{policy.citing}")

    def build_focused_request(self, text: str, nonce: str) -> Request:
        # Told what to write when nothing is there, small models write it, whatever is there.
        return self._build(text, PASSAGES.format(**self._tool), self._task, nonce)

    def build_chunk_request(self, text: str, index: int, total: int, overlap: int, nonce: str) -> Request:
        del overlap
        if total == 1:
            return self._build(text, WHOLE.format(**self._tool), self._task, nonce)
        origin = PART.format(index=index + 1, total=total, **self._tool)
        return self._build(text, origin, f"{self._task}\n{OR_NOTHING}", nonce)

    def build_merge_request(self, outputs: str, count: int, total: int, nonce: str) -> Request:
        return self._build(outputs, FINDINGS.format(outputs=count, total=total, **self._tool), self._task, nonce)

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
            only_sources=self._only_sources,
            is_echo=self._is_echo,
        )

    def describe_missing_report(self, response: Response, nonce: str) -> str:
        if wrapper.strip(response.text, nonce):
            return ""
        return TOOL_CALL if response.calls else EMPTY_ANSWER

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
    """What a model may repeat, line by line and sentence by sentence."""
    texts = [*(load_template(f"plain/{name}") for name in _TASKS), OR_NOTHING, "QUESTION", "ANSWER:", "Answer"]
    lines = [line for text in texts for line in text.splitlines()]
    return frozenset(line.strip("*#_-> \t").casefold() for line in lines)
