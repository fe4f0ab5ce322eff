"""What an agent needs besides its session. Creating the parts finds the mistakes that keep an agent from starting."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from overspill.agent.file.load import Agent
from overspill.agent.report import ReportCheck
from overspill.agent.run.context_guard import ContextGuard
from overspill.agent.run.models import AgentModels, open_models
from overspill.models.endpoints import Endpoint
from overspill.models.protocol import Model
from overspill.models.targets import Observer, Targets


class AgentParts:
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
