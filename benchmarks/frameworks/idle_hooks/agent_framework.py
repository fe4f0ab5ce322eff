"""Microsoft Agent Framework: the three kinds of middleware."""

from __future__ import annotations

from typing import Any

from agent_framework import Agent, AgentMiddleware, ChatMiddleware, FunctionMiddleware

from tests.integrations.drivers.agent_framework import FrameworkAgent, ScriptedClient


class IdleRun(AgentMiddleware):
    async def process(self, context: Any, call_next: Any) -> None:
        await call_next()


class IdleRequest(ChatMiddleware):
    async def process(self, context: Any, call_next: Any) -> None:
        await call_next()


class IdleCall(FunctionMiddleware):
    async def process(self, context: Any, call_next: Any) -> None:
        await call_next()


def make_agent(functions: Any, script: Any) -> Any:
    middleware = [IdleRun(), IdleRequest(), IdleCall()]
    return FrameworkAgent(Agent(ScriptedClient(script), tools=list(functions), middleware=middleware))
