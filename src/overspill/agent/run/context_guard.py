"""What a conversation takes of the context window, counted before each request and corrected after it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from overspill.budget import ContextBudget
from overspill.errors import SettingsError
from overspill.models.protocol import Request, Response
from overspill.retrieval.definitions import definition
from overspill.settings import Settings
from overspill.text import tokens
from overspill.types import Reply

_PER_MESSAGE = 4  # tokens that mark where a message begins and who says it


class ContextGuard:
    """`overfull`: an answer had to be given that did not fit. From then on only the final report is possible."""

    def __init__(self, settings: Settings, window: int, output: int) -> None:
        self.window = settings.context_window or window
        self.output = settings.max_output_tokens or min(output, self.window // 4)
        if self.output + settings.context_buffer >= self.window:
            raise SettingsError(
                f"maxOutputTokens ({self.output}) and contextBuffer ({settings.context_buffer}) leave nothing of the context "
                f"window of {self.window} tokens. Make them smaller, or contextWindow larger."
            )
        self.budget = ContextBudget(self.window, reserve_output=self.output, buffer=settings.context_buffer)
        self.overfull = False
        self._buffer = settings.context_buffer
        self._retrieval = [definition(name, "jsonschema") for name in settings.surface]
        self._model = settings.model
        self._mark = 0

    @property
    def percent(self) -> int:
        return min(100, (self.budget.used + self.budget.reserved) * 100 // self.window)

    @property
    def full(self) -> bool:
        """Small things that nobody reserved for may eat into the buffer: a handle that fitted must not end the work."""
        return self.overfull or self.budget.used + self.budget.reserved >= self.window - self.output

    def take(self, request: Request) -> None:
        """Before a request: whatever of it is not on the account yet, schemas of tools and the notice too, is put there.

        Room for the retrieval tools is set aside until they are offered: the first handle brings them along.
        """
        offered = {tool["name"] for tool in request.tools}
        to_come = sum(self._schema(tool) for tool in self._retrieval if tool["name"] not in offered)
        self.budget.buffer = self._buffer + (to_come if len(offered) > 1 else 0)
        missing = self._tokens(request) - self.budget.used - self.budget.reserved
        if missing > 0:
            self.budget.charge(missing)
        self._mark = self.budget.mark()

    def settle(self, request: Request, response: Response) -> None:
        """The provider's count, or our own where it gives none."""
        usage = response.usage
        sent = usage.input_tokens or self._tokens(request)
        self.budget.settle(sent + (usage.output_tokens or self._count_answer(response.text, response.calls)), self._mark)

    def count_replies(self, replies: Iterable[Reply]) -> None:
        self.overfull = self.overfull or not all(reply.fits for reply in replies)

    def afford(self, text: str, reserved: int = 0) -> bool:
        """Reserve room for a text that has to be said, whether there is any or not; of it, so much is reserved already."""
        need = max(0, tokens.count(text, self._model).tokens - reserved)
        if self.budget.reserve(need):
            return True
        self.budget.charge(need)
        return False

    def _tokens(self, request: Request) -> int:
        counted = tokens.count(request.system, self._model).tokens + sum(map(self._schema, request.tools))
        return counted + sum(_PER_MESSAGE + self._count_answer(message.text, message.calls) for message in request.messages)

    def _schema(self, tool: dict[str, Any]) -> int:
        return tokens.count(json.dumps(tool, ensure_ascii=False), self._model).tokens

    def _count_answer(self, text: str, calls: Iterable[object]) -> int:
        return tokens.count("\n".join([text, *map(str, calls)]), self._model).tokens
