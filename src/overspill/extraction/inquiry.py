"""One question to one document, and how a model is asked about it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from overspill import tokens
from overspill.errors import OverspillError
from overspill.extraction import prompting, report, wrapper
from overspill.extraction.cache import Cache, Key
from overspill.extraction.document import Asks, Document, ExtractionFailed, Mode, Policy, Progress, output_tokens
from overspill.extraction.prompting import Prompts
from overspill.extraction.report import Report
from overspill.models.base import Request

T = TypeVar("T")

LONGEST_ANSWER = 256 * 1024
"""Characters. No model means to write a longer report; something went wrong."""

NO_REPORT = "The model gave no final report."
EMPTY = "The model answered nothing."
TOOL_CALL = "The model called a tool instead of giving its final report."
TOO_LONG = "The model's answer has {chars:,} characters, more than a report may have ({most:,})."
BROKEN = "The model could not be asked ({error})."
NO_ROOM = (
    "What to extract takes {needed:,} tokens together with the instructions, which leaves no room for the document in the "
    "context window of {model} ({window:,} tokens, {output:,} of them for the answer). "
    "Ask with fewer words, or use a larger model."
)
_LEAST_ROOM = 256


class Inquiry(Struct, frozen=True):
    document: Document
    query: str
    mode: Mode
    model: Asks
    policy: Policy
    cache: Cache
    prompts: Prompts
    deadline: float = math.inf
    progress: Progress | None = None

    @property
    def key(self) -> Key:
        return Key(self.document.sha256, self.query, self.mode, self.model.name, prompting.version(), self.policy.max_tokens)

    def room(self, request: Request) -> int:
        """Tokens that a request and its answer leave in the window. ExtractionFailed where that is nearly none."""
        output = output_tokens(self.model)
        needed = self.tokens(request.system) + sum(self.tokens(message.text) for message in request.messages)
        free = self.model.context_window - output - needed
        if free < _LEAST_ROOM:
            window = self.model.context_window
            raise ExtractionFailed(NO_ROOM.format(needed=needed, model=self.model.name, window=window, output=output))
        return free

    def tokens(self, text: str) -> int:
        return tokens.count(text, self.model.name).tokens

    async def ask(self, request: Request, nonce: str) -> Report:
        """The model's report, or ExtractionFailed with what was wrong."""
        try:
            response = await self.model.ask(replace(request, max_output_tokens=output_tokens(self.model)))
        except OverspillError as error:
            raise ExtractionFailed(str(error)) from error
        except Exception as error:  # whoever serves a model is not ours, and one broken answer must not end the others
            raise ExtractionFailed(BROKEN.format(error=error or type(error).__name__)) from error
        return understood(response.text, nonce, response.model or self.model.name, called=bool(response.calls))


def understood(text: str, nonce: str, model: str, *, called: bool = False) -> Report:
    if len(text) > LONGEST_ANSWER:
        raise ExtractionFailed(TOO_LONG.format(chars=len(text), most=LONGEST_ANSWER))
    content = wrapper.unwrap(text, nonce)
    if content is None:
        raise ExtractionFailed(TOOL_CALL if called else NO_REPORT if text.strip() else EMPTY)
    return report.parse(content, model)


async def in_thread(work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work)
