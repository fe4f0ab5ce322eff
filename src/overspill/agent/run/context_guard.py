"""How much of the context window a conversation uses: counted before each request, corrected after it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from overspill.budget import ContextBudget
from overspill.errors import SettingsError
from overspill.models.protocol import Request, Response
from overspill.settings import Settings
from overspill.text import tokens
from overspill.types import Reply

_TOKENS_FOR_NOTICE = 100  # it is added last
_TOKENS_PER_MESSAGE = 4  # for the role and the boundaries of a message


class ContextGuard:
    """`overfull` is set once an answer did not fit. From then on the agent can only report."""

    def __init__(self, settings: Settings, window: int, output: int) -> None:
        self.window = settings.context_window or window
        self.output = settings.max_output_tokens or min(output, self.window // 4)
        if self.output + settings.context_buffer >= self.window:
            raise SettingsError(
                f"maxOutputTokens ({self.output}) and contextBuffer ({settings.context_buffer}) use up the whole context window "
                f"of {self.window} tokens. Lower them, or raise contextWindow."
            )
        self.budget = ContextBudget(self.window, reserve_output=self.output, buffer=settings.context_buffer)
        self.overfull = False
        self._model = settings.model
        self._mark = 0

    @property
    def percent(self) -> int:
        return min(100, (self.budget.used + self.budget.reserved) * 100 // self.window)

    @property
    def is_full(self) -> bool:
        """Small texts may use up the buffer without ending the run; a handle, for example."""
        return self.overfull or self.budget.used + self.budget.reserved >= self.window - self.output

    def take(self, request: Request) -> None:
        """Before a request, charge what is not counted yet, including tool schemas and the notice."""
        missing = self._count_request(request) - self.budget.used - self.budget.reserved
        if missing > 0:
            self.budget.charge(missing)
        self._mark = self.budget.mark()

    def has_room_for(self, request: Request) -> bool:
        """Whether the request, its notice and the longest answer to it fit the window."""
        return self._count_request(request) + _TOKENS_FOR_NOTICE + self.output <= self.window

    def settle(self, request: Request, response: Response) -> None:
        """Use the provider's count, or our own if it gives none."""
        usage = response.usage
        sent = usage.input_tokens or self._count_request(request)
        self.budget.settle(sent + (usage.output_tokens or self._count_answer(response.text, response.calls)), self._mark)

    def count_replies(self, replies: Iterable[Reply]) -> None:
        self.overfull = self.overfull or not all(reply.fits for reply in replies)

    def afford(self, text: str, reserved: int = 0) -> bool:
        """Charge for text that must be sent, beyond what is already reserved for it. Returns whether it fits."""
        need = max(0, tokens.count(text, self._model).tokens - reserved)
        if self.budget.reserve(need):
            return True
        self.budget.charge(need)
        return False

    def _count_request(self, request: Request) -> int:
        counted = tokens.count(request.system, self._model).tokens + sum(map(self._count_schema, request.tools))
        return counted + sum(
            _TOKENS_PER_MESSAGE + self._count_answer(message.text, message.calls) for message in request.messages
        )

    def _count_schema(self, tool: dict[str, Any]) -> int:
        return tokens.count(json.dumps(tool, ensure_ascii=False), self._model).tokens

    def _count_answer(self, text: str, calls: Iterable[object]) -> int:
        return tokens.count("\n".join([text, *map(str, calls)]), self._model).tokens
