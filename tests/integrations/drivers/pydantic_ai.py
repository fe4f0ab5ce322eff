"""Pydantic AI: an `Agent` with a `FunctionModel` that follows the script."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from overspill.integrations.pydantic_ai import Overspill
from tests.integrations.driving import Request, Script, run_program


def make_model(script: Script) -> FunctionModel:
    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        step = script(_read(messages, info))
        if isinstance(step, str):
            return ModelResponse([TextPart(step)])
        return ModelResponse([ToolCallPart(call.name, dict(call.args), call.id) for call in step])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        step = script(_read(messages, info))
        if isinstance(step, str):
            for start in range(0, len(step), 100):
                yield step[start : start + 100]
        else:
            yield {
                index: DeltaToolCall(call.name, json.dumps(dict(call.args)), tool_call_id=call.id)
                for index, call in enumerate(step)
            }

    return FunctionModel(answer, stream_function=stream)


def _read(messages: list[ModelMessage], info: AgentInfo) -> Request:
    parts = [part for message in messages for part in message.parts]
    results = {part.tool_call_id: part.model_response_str() for part in parts if isinstance(part, ToolReturnPart)}
    results |= {part.tool_call_id: part.model_response() for part in parts if part.part_kind == "retry-prompt"}
    said = [str(part.content) for part in parts if isinstance(part, UserPromptPart | TextPart)]
    tools = {tool.name: [tool.description, tool.parameters_json_schema] for tool in info.function_tools}
    files = [file for part in parts if isinstance(part, ToolReturnPart) for file in part.files]
    images = [file.base64 for file in files if isinstance(file, BinaryContent)]
    return Request(tools, results, "\n".join([*said, *results.values()]), len(messages), images)


class PydanticAgent:
    def __init__(self, agent: Agent[Any, str]) -> None:
        self._agent = agent

    async def run(self, prompt: str, conversation: str = "") -> str:
        return (await self._agent.run(prompt, conversation_id=conversation or None)).output

    def run_sync(self, prompt: str) -> str:
        return self._agent.run_sync(prompt).output

    async def stream(self, prompt: str) -> AsyncIterator[str]:
        async with self._agent.run_stream(prompt) as run:
            async for piece in run.stream_text(delta=True):
                yield piece


class Driver:
    def agent(self, functions: Sequence[Callable[..., Any]], script: Script, *, bare: bool = False, **options: Any) -> Any:
        capabilities = [] if bare else [Overspill(**options)]
        return PydanticAgent(Agent(make_model(script), tools=functions, capabilities=capabilities))

    def make_result(self, text: str, image: bytes) -> Any:
        return [text, BinaryContent(image, media_type="image/png")]

    def run_page(self, source: str, script: Script) -> str:
        return run_program(source, '"openai:gpt-5"', make_model(script))


DRIVER = Driver()
