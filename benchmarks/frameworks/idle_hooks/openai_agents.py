"""The OpenAI Agents SDK: tools that call other tools."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agents import Agent, function_tool

from tests.integrations.drivers.openai_agents import ScriptedModel, SdkAgent


def wrap(tool: Any) -> Any:
    async def invoke(context: Any, arguments: str) -> Any:
        return await tool.on_invoke_tool(context, arguments)

    return replace(tool, on_invoke_tool=invoke)


def make_agent(functions: Any, script: Any) -> Any:
    tools = [wrap(function_tool(each, strict_mode=False)) for each in functions]
    return SdkAgent(Agent("agent", model=ScriptedModel(script), tools=tools))
