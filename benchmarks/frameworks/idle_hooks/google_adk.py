"""Google ADK: a plugin that has tools run in threads. The bare framework runs them on the event loop, which they block."""

from __future__ import annotations

from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, ToolThreadPoolConfig
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner

from tests.integrations.drivers.google_adk import AdkAgent, ScriptedModel


class Idle(BasePlugin):
    async def before_run_callback(self, *, invocation_context: Any) -> None:
        config = invocation_context.run_config or RunConfig()
        pool = ToolThreadPoolConfig(max_workers=40)
        invocation_context.run_config = config.model_copy(update={"tool_thread_pool_config": pool})

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        return None

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        return None


def make_agent(functions: Any, script: Any) -> Any:
    agent = LlmAgent(name="helper", model=ScriptedModel(model="scripted", script=script), tools=list(functions))
    return AdkAgent(InMemoryRunner(app=App(name="suite", root_agent=agent, plugins=[Idle(name="idle")])))
