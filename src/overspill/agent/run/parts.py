"""What an agent is made of besides its session. What can be wrong with it before it starts shows when these are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from overspill.agent.file.load import Agent
from overspill.agent.report import ReportCheck
from overspill.agent.run.context_guard import ContextGuard
from overspill.agent.run.models import AgentModels, open_models
from overspill.models.endpoints import Endpoint
from overspill.models.protocol import Model
from overspill.models.targets import Observer, Targets


class Parts:
    def __init__(
        self,
        agent: Agent,
        models: Mapping[str, Model],
        endpoints: Mapping[str, Endpoint],
        *,
        warn: Callable[[str], None] = lambda _: None,
        noted: Observer = lambda _: None,
    ) -> None:
        opened = open_models(agent.settings, models, endpoints, warn)
        targets = Targets(opened, retries=agent.settings.max_retries, observe=noted)
        self.connected = targets.keep_connected
        self.models = {model.name: model for model in opened}
        self.guard = ContextGuard(agent.settings, targets.context_window, targets.max_output_tokens)
        self.reports = ReportCheck(agent.file.keys.output)
        self.asking = AgentModels(targets, self.guard, self.reports)
