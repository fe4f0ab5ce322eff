"""An agent's models behind one `ask`: the context is guarded, and reports are recognized in any form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext

import anyio
from msgspec.structs import replace

from overspill.agent.file import Agent
from overspill.agent.report import ReportCheck
from overspill.budget import ContextBudget
from overspill.errors import SettingsError
from overspill.models.endpoints import Endpoint
from overspill.models.opening import open_model
from overspill.models.protocol import HasConnections, Model, ModelError, Request, Response
from overspill.models.targets import Observer, Targets
from overspill.models.written import find_written_calls
from overspill.settings import Settings
from overspill.text import tokens
from overspill.types import Reply


class AgentModels:
    """The models of an agent as one. Opening them finds the mistakes that keep an agent from starting.

    `plain` is whether plain text counts as a report. `model` is the model that answered last, and `said` is its text.
    """

    def __init__(
        self,
        agent: Agent,
        models: Mapping[str, Model],
        endpoints: Mapping[str, Endpoint],
        *,
        warn: Callable[[str], None] = lambda _: None,
        observe: Observer = lambda _: None,
    ) -> None:
        opened = open_models(agent.settings, models, endpoints, warn)
        self._targets = Targets(opened, retries=agent.settings.max_retries, observe=observe)
        self.keep_connected = self._targets.keep_connected
        self.by_name = {model.name: model for model in opened}
        self.guard = ContextGuard(agent.settings, self._targets.context_window, self._targets.max_output_tokens)
        self.reports = ReportCheck(agent.file.keys.output)
        self.plain = False
        self.model: str | None = None
        self.said = ""

    async def ask(self, request: Request) -> Response:
        self.guard.take(request)
        response = await self._targets.ask(request)
        self.guard.settle(request, response)
        self.model, self.said = response.model or self._targets.name, response.text
        response = self.reports.parse_report(response, plain=False)
        if self.plain and not response.calls:  # a call written as text is not a report
            written = find_written_calls(response, [tool["name"] for tool in request.tools])
            response = self.reports.parse_report(written, plain=True)
        # Some providers give several calls the same id, but each call needs an answer under its own id.
        ids, calls = [call.id for call in response.calls], enumerate(response.calls)
        unique = [replace(call, id=f"{call.id}-{at + 1}") if call.id in ids[:at] else call for at, call in calls]
        return replace(response, calls=tuple(unique))


class TimedModel:
    """A model with a time limit for each answer."""

    def __init__(self, model: Model, seconds: float) -> None:
        self.name = model.name
        self.context_window = model.context_window
        self.max_output_tokens = model.max_output_tokens
        self._model = model
        self._seconds = seconds

    def keep_connected(self) -> AbstractAsyncContextManager[None]:
        return self._model.keep_connected() if isinstance(self._model, HasConnections) else nullcontext()

    async def ask(self, request: Request) -> Response:
        try:
            with anyio.fail_after(self._seconds):
                return await self._model.ask(request)
        except TimeoutError:
            raise ModelError(f"{self.name} did not answer within {self._seconds:g} s (llmTimeout).", is_transient=True) from None


def open_models(
    settings: Settings, given: Mapping[str, Model], endpoints: Mapping[str, Endpoint], warn: Callable[[str], None]
) -> list[Model]:
    """The models of an agent, in order. Those that cannot be opened are skipped with a warning; having none left is an error."""
    if not settings.models:
        raise SettingsError("No model is configured. Add `models: [provider/model]` to the agent file, or use --model.")
    seconds = settings.llm_timeout
    if seconds is not None:
        endpoints = {name: replace(endpoint, timeout=seconds) for name, endpoint in endpoints.items()}
    opened: list[Model] = []
    failed: list[str] = []
    for target in settings.models:
        try:
            opened.append(given[target] if target in given else open_model(target, endpoints, settings.model_limits))
        except SettingsError as error:
            failed.append(str(error))
    if not opened:
        raise SettingsError(" ".join(failed))
    for problem in failed:
        warn(problem)
    return [TimedModel(model, seconds) for model in opened] if seconds is not None else opened


_TOKENS_FOR_NOTICE = 100  # it is added last
_TOKENS_PER_MESSAGE = 4  # for the role and the boundaries of a message


class ContextGuard:
    """How much of the window a conversation uses: counted before each request, corrected after it.

    `overfull` is set once an answer did not fit. From then on the agent can only report.
    """

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
        """Small texts, such as a handle, may use up the buffer: full means that only the room for output is left."""
        return self.overfull or self.budget.used + self.budget.reserved >= self.window - self.output

    def take(self, request: Request) -> None:
        """Before a request, charge what is not counted yet, including tool schemas and the notice."""
        missing = self._count_request(request) - self.budget.used - self.budget.reserved
        if missing > 0:
            self.budget.charge(missing)
        self._mark = self.budget.mark()

    def has_room_for(self, request: Request) -> bool:
        """Whether the request, its notice and the longest possible answer fit the window."""
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
        texts = [request.system, *(json.dumps(tool, ensure_ascii=False) for tool in request.tools)]
        messages = (_TOKENS_PER_MESSAGE + self._count_answer(each.text, each.calls) for each in request.messages)
        return sum(tokens.count(text, self._model).tokens for text in texts) + sum(messages)

    def _count_answer(self, text: str, calls: Iterable[object]) -> int:
        return tokens.count("\n".join([text, *map(str, calls)]), self._model).tokens
