"""LangChain: a middleware around each call and each request."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import tool

from tests.integrations.drivers.langchain import LangChainAgent, ScriptedModel


class Idle(AgentMiddleware):
    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        return None

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        return None

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


def make_agent(functions: Any, script: Any) -> Any:
    return LangChainAgent(ScriptedModel(script=script), [tool(each) for each in functions], middleware=[Idle()])
