"""One question about one document, how to ask a model about it, and what was answered: a repeated question continues there."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from overspill.errors import OverspillError
from overspill.extraction import prompting
from overspill.extraction.chunks import CitableLines, Span
from overspill.extraction.document import Document, ExtractionFailed, ModelMode, OnInspection, Progress, Question, limit_output
from overspill.extraction.prompting import Prompts
from overspill.extraction.report import ModelReport
from overspill.extraction.support import choose_supporting
from overspill.models.protocol import Request, Response
from overspill.models.targets import Targets
from overspill.store.recent import Recent
from overspill.text import tokens
from overspill.text.encoding import decode
from overspill.types import Extraction

T = TypeVar("T")

MAX_ANSWER_CHARS = 256 * 1024
"""A longer report is rejected, because something must have gone wrong."""
MAX_RESULT_CHARS = 16 << 20
"""Characters of results that a session holds. Results of single chunks have a separate limit of the same size."""
_MIN_ROOM_TOKENS = 256
_SAMPLE_BYTES = 2048  # bytes
_SAMPLE_COUNT = 64


class CacheKey(Struct, frozen=True):
    """Everything an answer depends on."""

    sha256: str
    query: str
    mode: str
    model: str
    prompts: str
    max_tokens: int


class Cache:
    """What a session has extracted: whole results and single chunks, but no failures and partial results."""

    def __init__(self) -> None:
        self.results: Recent[CacheKey, Extraction] = Recent(
            MAX_RESULT_CHARS, lambda result: len(result.text) + sum(len(excerpt.text) for excerpt in result.excerpts)
        )
        self.chunks: Recent[tuple[CacheKey, Span], ModelReport] = Recent(
            MAX_RESULT_CHARS, lambda report: len(report.answer) + sum(map(len, report.quotes))
        )


class Inquiry(Question, frozen=True):
    """A question for a model."""

    mode: ModelMode
    model: Targets
    cache: Cache
    prompts: Prompts
    deadline: float = math.inf
    progress: Progress | None = None
    on_inspection: OnInspection | None = None
    max_answer_tokens: int = 2000
    """The most tokens of the model's own words."""

    @property
    def key(self) -> CacheKey:
        version = f"{prompting.hash_prompts()}-{self.policy.contract}"
        return CacheKey(self.document.sha256, self.query, self.mode, self.model.name, version, self.policy.max_tokens)

    @property
    def is_plain(self) -> bool:
        """Whether the contract is the plain one, in which the model is shown lines that it can cite by number."""
        return self.policy.contract == "plain"

    def measure_room(self, request: Request) -> int:
        """Tokens that a request and its answer leave in the window. Raises ExtractionFailed if almost none are left."""
        output = limit_output(self.model)
        texts = [request.system, *(message.text for message in request.messages), *map(json.dumps, request.tools)]
        needed = sum(map(self.count_tokens, texts))
        free = self.model.context_window - output - needed
        if free < _MIN_ROOM_TOKENS:
            raise ExtractionFailed(
                f"What to extract takes {needed:,} tokens together with the instructions, which leaves no room for the document "
                f"in the context window of {self.model.name} ({self.model.context_window:,} tokens, {output:,} of them for the "
                "answer). Ask with fewer words, or use a larger model."
            )
        return free

    def count_tokens(self, text: str) -> int:
        return tokens.count(text, self.model.name).tokens

    async def ask(self, request: Request, nonce: str, lines: CitableLines | None = None) -> ModelReport:
        """Return the model's report. Raises ExtractionFailed, with the reason, if the model gives none."""
        bounded = replace(request, max_output_tokens=limit_output(self.model))
        try:
            response = await self.model.ask(bounded, lambda response: self.describe_missing_report(response, nonce))
        except OverspillError as error:
            raise ExtractionFailed(str(error)) from error
        return self.parse_report(response, nonce, lines)

    def parse_report(self, response: Response, nonce: str, lines: CitableLines | None = None) -> ModelReport:
        """The report in an answer that `describe_missing_report` accepts. Cited numbers become lines that support the answer."""
        parsed = self.prompts.read_report(response, nonce, lines)
        parsed = parsed if parsed.model else replace(parsed, model=self.model.name)
        if lines is None or not parsed.numbers:
            return parsed
        cited = lines.find(parsed.numbers)
        supporting = choose_supporting(cited, parsed.answer, self.query) if parsed.answer else cited
        omitted = parsed.omitted_quotes + len(cited) - len(supporting)
        return replace(parsed, cited=tuple(line.span for line in supporting), omitted_quotes=omitted)

    def describe_missing_report(self, response: Response, nonce: str) -> str:
        """Why an answer holds no report; empty if it holds one."""
        if len(response.text) > MAX_ANSWER_CHARS:
            return f"wrote {len(response.text):,} characters, more than a report may have ({MAX_ANSWER_CHARS:,})."
        return self.prompts.describe_missing_report(response, nonce)


def scale_for_model(model: Targets, document: Document) -> Document:
    """The document with its size in the model's own tokens, estimated from evenly spread samples if it is long. Blocks."""
    reader, whole = document.reader, document.reader.size
    spans = [(0, whole)]
    if whole > tokens.MAX_EXACT_CHARS:
        spans = [(start, start + _SAMPLE_BYTES) for start in range(0, whole - _SAMPLE_BYTES, whole // _SAMPLE_COUNT)]
    counted = sum(tokens.count(decode(reader.read(*span)), model.name).tokens for span in spans)
    estimated = round(counted * whole / sum(end - start for start, end in spans))
    return replace(document, size=replace(document.size, tokens=estimated))


async def run_in_thread(work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work)
