"""Strands: a hook that puts another tool in the place of the one that is called."""

from __future__ import annotations

from typing import Any

from strands import tool
from strands.hooks import BeforeToolCallEvent
from strands.plugins import Plugin
from strands.types.tools import AgentTool

from tests.integrations.drivers.strands import ScriptedModel, StrandsAgent


class Wrapped(AgentTool):
    tool_name: Any = ""
    tool_spec: Any = None
    tool_type: Any = "python"

    def __init__(self, original: AgentTool) -> None:
        super().__init__()
        self.tool_name, self.tool_spec, self._original = original.tool_name, original.tool_spec, original

    async def stream(self, *args: Any, **kwargs: Any) -> Any:
        async for event in self._original.stream(*args, **kwargs):
            yield event


class Idle(Plugin):
    name = "idle"

    def init_agent(self, agent: Any) -> None:
        agent.add_hook(self._wrap, BeforeToolCallEvent)

    def _wrap(self, event: BeforeToolCallEvent) -> None:
        event.selected_tool = Wrapped(event.selected_tool)  # pyright: ignore[reportArgumentType]


def make_agent(functions: Any, script: Any) -> Any:
    return StrandsAgent(model=ScriptedModel(script), tools=[tool(each) for each in functions], plugins=[Idle()])
