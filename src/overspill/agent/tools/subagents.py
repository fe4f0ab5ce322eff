"""Agents as tools: a call starts another run, and its report is the tool's output."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from overspill.agent.file.load import Agent
from overspill.agent.tools.offers import OfferedTool
from overspill.types import Output

RunBelow: TypeAlias = Callable[[str, Agent, str], Awaitable[str | Output]]
"""Takes the tool's name, the agent and the question. Returns the report, or what went wrong."""


def as_tool(name: str, agent: Agent, run: RunBelow, *, background: bool) -> OfferedTool:
    async def call(prompt: str) -> str | Output:
        return await run(name, agent, prompt)

    properties: dict[str, Any] = {
        "prompt": {"type": "string", "description": "The task, with everything the agent needs to know"}
    }
    if background:
        properties["async"] = {
            "type": "boolean",
            "description": "true: run in the background from the start, so that you can continue meanwhile",
        }
    parameters = {"type": "object", "additionalProperties": False, "required": ["prompt"], "properties": properties}
    return OfferedTool(
        name, agent.file.keys.description or f"Hand a task to the agent {agent.name}", parameters, call, kind="agent"
    )
