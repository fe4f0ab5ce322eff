"""Pydantic AI: a capability around each call and each request."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability

from tests.integrations.drivers.pydantic_ai import PydanticAgent, make_model


class Idle(AbstractCapability[Any]):
    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        return await handler()

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
        return request_context

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        return response

    async def prepare_tools(self, ctx: Any, tool_defs: Any) -> Any:
        return tool_defs

    async def before_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return args

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        return await handler(args)


def make_agent(functions: Any, script: Any) -> Any:
    return PydanticAgent(Agent(make_model(script), tools=functions, capabilities=[Idle()]))
