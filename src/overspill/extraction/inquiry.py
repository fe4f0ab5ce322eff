"""One question about one document, and how to ask a model about it."""

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
from overspill.extraction import prompting, report, wrapper
from overspill.extraction.cache import Cache, Key
from overspill.extraction.document import (
    Document,
    ExtractionFailed,
    ModelMode,
    ModelPool,
    OnInspection,
    Policy,
    Progress,
    limit_output,
)
from overspill.extraction.prompting import Prompts
from overspill.extraction.report import Report
from overspill.models.protocol import Request, Response
from overspill.text import tokens
from overspill.text.encoding import decode

T = TypeVar("T")

MAX_ANSWER_CHARS = 256 * 1024
"""A longer report means that something went wrong."""

NO_REPORT = "gave no final report."
EMPTY_ANSWER = "answered nothing."
TOOL_CALL = "called a tool instead of giving its final report."
TOO_LONG = "wrote {chars:,} characters, more than a report may have ({most:,})."
NO_ROOM = (
    "What to extract takes {needed:,} tokens together with the instructions, which leaves no room for the document in the "
    "context window of {model} ({window:,} tokens, {output:,} of them for the answer). "
    "Ask with fewer words, or use a larger model."
)
_MIN_ROOM_TOKENS = 256
_SAMPLE_BYTES = 2048  # bytes
_SAMPLE_COUNT = 64


class Inquiry(Struct, frozen=True):
    document: Document
    query: str
    mode: ModelMode
    model: ModelPool
    policy: Policy
    cache: Cache
    prompts: Prompts
    deadline: float = math.inf
    progress: Progress | None = None
    on_inspection: OnInspection | None = None

    @property
    def key(self) -> Key:
        return Key(self.document.sha256, self.query, self.mode, self.model.name, prompting.hash_prompts(), self.policy.max_tokens)

    def measure_room(self, request: Request) -> int:
        """Tokens that a request and its answer leave in the window. Raises ExtractionFailed where next to none are left."""
        output = limit_output(self.model)
        texts = [request.system, *(message.text for message in request.messages), *map(json.dumps, request.tools)]
        needed = sum(map(self.count_tokens, texts))
        free = self.model.context_window - output - needed
        if free < _MIN_ROOM_TOKENS:
            window = self.model.context_window
            raise ExtractionFailed(NO_ROOM.format(needed=needed, model=self.model.name, window=window, output=output))
        return free

    def count_tokens(self, text: str) -> int:
        return tokens.count(text, self.model.name).tokens

    async def ask(self, request: Request, nonce: str) -> Report:
        """The model's report. Raises ExtractionFailed with what was wrong."""
        bounded = replace(request, max_output_tokens=limit_output(self.model))
        try:
            response = await self.model.ask(bounded, lambda response: describe_missing_report(response, nonce))
        except OverspillError as error:
            raise ExtractionFailed(str(error)) from error
        return self.parse_report(response, nonce)

    def parse_report(self, response: Response, nonce: str) -> Report:
        """The report in an answer that `describe_missing_report` accepts."""
        return report.parse(wrapper.unwrap(response.text, nonce) or "", response.model or self.model.name)


def describe_missing_report(response: Response, nonce: str) -> str:
    """Why an answer holds no report; empty where it holds one."""
    if len(response.text) > MAX_ANSWER_CHARS:
        return TOO_LONG.format(chars=len(response.text), most=MAX_ANSWER_CHARS)
    if wrapper.unwrap(response.text, nonce) is not None:
        return ""
    return TOOL_CALL if response.calls else NO_REPORT if response.text.strip() else EMPTY_ANSWER


def scale_for_model(model: ModelPool, document: Document) -> Document:
    """The document with its size in the model's own tokens, estimated from evenly spread samples where it is long. Blocks."""
    reader, whole = document.reader, document.reader.size
    spans = [(0, whole)]
    if whole > tokens.MAX_EXACT_CHARS:
        spans = [(start, start + _SAMPLE_BYTES) for start in range(0, whole - _SAMPLE_BYTES, whole // _SAMPLE_COUNT)]
    counted = sum(tokens.count(decode(reader.read(*span)), model.name).tokens for span in spans)
    estimated = round(counted * whole / sum(end - start for start, end in spans))
    return replace(document, size=replace(document.size, tokens=estimated))


async def run_in_thread(work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work)
