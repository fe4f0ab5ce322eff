"""An agent's models behind one `ask`: the context is guarded, and reports are recognized in any form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext

import anyio
from msgspec.structs import replace

from overspill.agent.file.load import Agent
from overspill.agent.report import ReportCheck
from overspill.agent.run.context_guard import ContextGuard
from overspill.errors import SettingsError
from overspill.models.endpoints import Endpoint
from overspill.models.facts import convert_limits
from overspill.models.opening import open_model
from overspill.models.protocol import HasConnections, Model, ModelError, Request, Response
from overspill.models.targets import Observer, Targets
from overspill.models.written import find_written_calls
from overspill.settings import Settings


class AgentModels:
    """`plain` is whether plain text counts as a report. `model` is the model that answered last, and `said` is its text."""

    def __init__(self, targets: Targets, guard: ContextGuard, reports: ReportCheck) -> None:
        self.plain = False
        self.model: str | None = None
        self.said = ""
        self._targets = targets
        self._guard = guard
        self._reports = reports

    async def ask(self, request: Request) -> Response:
        self._guard.take(request)
        response = await self._targets.ask(request)
        self._guard.settle(request, response)
        self.model, self.said = response.model or self._targets.name, response.text
        response = self._reports.parse_report(response, plain=False)
        if self.plain and not response.calls:  # a call written as text is not a report
            written = find_written_calls(response, [tool["name"] for tool in request.tools])
            response = self._reports.parse_report(written, plain=True)
        return _make_ids_unique(response)


def _make_ids_unique(response: Response) -> Response:
    """Some providers give several calls the same id, but each call needs its own answer."""
    ids = [call.id for call in response.calls]
    if len(set(ids)) == len(ids):
        return response
    calls = enumerate(response.calls)
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
    limits = convert_limits(settings.model_limits)
    opened: list[Model] = []
    failed: list[str] = []
    for target in settings.models:
        try:
            opened.append(given[target] if target in given else open_model(target, endpoints, limits))
        except SettingsError as error:
            failed.append(str(error))
    if not opened:
        raise SettingsError(" ".join(failed))
    for problem in failed:
        warn(problem)
    return [TimedModel(model, seconds) for model in opened] if seconds is not None else opened


class AgentParts:
    """What an agent needs besides its session. Creating the parts finds the mistakes that keep an agent from starting."""

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
        targets = Targets(opened, retries=agent.settings.max_retries, observe=observe)
        self.keep_connected = targets.keep_connected
        self.models = {model.name: model for model in opened}
        self.guard = ContextGuard(agent.settings, targets.context_window, targets.max_output_tokens)
        self.reports = ReportCheck(agent.file.keys.output)
        self.asking = AgentModels(targets, self.guard, self.reports)
