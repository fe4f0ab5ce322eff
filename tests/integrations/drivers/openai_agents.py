"""The OpenAI Agents SDK: an `Agent` with a `Model` that follows the script."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from agents import (
    Agent,
    ModelResponse,
    RunConfig,
    Runner,
    ToolOutputImage,
    ToolOutputText,
    Usage,
    function_tool,
)
from agents.models.interface import Model
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from overspill.integrations.openai_agents import overspill_agent
from tests.integrations.driving import Request, Script, run_program


class ScriptedModel(Model):
    def __init__(self, script: Script) -> None:
        self._script = script

    def _answer(self, items: Any, tools: Sequence[Any]) -> list[Any]:
        step = self._script(_read(items, tools))
        if isinstance(step, str):
            text = ResponseOutputText(annotations=[], text=step, type="output_text")
            return [ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")]
        return [
            ResponseFunctionToolCall(arguments=json.dumps(dict(call.args)), call_id=call.id, name=call.name, type="function_call")
            for call in step
        ]

    async def get_response(self, *, input: Any, tools: Any, **others: Any) -> ModelResponse:
        return ModelResponse(output=self._answer(input, tools), usage=Usage(), response_id=None)

    async def stream_response(self, system: Any, input: Any, settings: Any, tools: Any, *others: Any, **more: Any) -> Any:
        response = Response(
            id="r",
            created_at=0,
            model="scripted",
            object="response",
            output=self._answer(input, tools),
            parallel_tool_calls=True,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(response=response, sequence_number=0, type="response.completed")


def _read(items: Any, tools: Sequence[Any]) -> Request:
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    results = {item["call_id"]: _text(item["output"]) for item in items if item.get("type") == "function_call_output"}
    said = [_text(item.get("content")) for item in items if item.get("content")]
    offered = {tool.name: [tool.description, tool.params_json_schema] for tool in tools}
    outputs = [item["output"] for item in items if item.get("type") == "function_call_output"]
    parts = [part for output in outputs if isinstance(output, list) for part in output]
    images = [part["image_url"].split(",")[1] for part in parts if part["type"] == "input_image"]
    return Request(offered, results, "\n".join([*said, *results.values()]), len(items), images)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content or ())


class SdkAgent:
    def __init__(self, agent: Agent[Any]) -> None:
        self._agent = agent

    async def run(self, prompt: str, conversation: str = "") -> str:
        config = RunConfig(tracing_disabled=True, group_id=conversation or None)
        return (await Runner.run(self._agent, prompt, run_config=config, max_turns=30)).final_output

    def run_sync(self, prompt: str) -> str:
        return Runner.run_sync(self._agent, prompt, run_config=RunConfig(tracing_disabled=True)).final_output

    async def stream(self, prompt: str) -> AsyncIterator[str]:
        run = Runner.run_streamed(self._agent, prompt, run_config=RunConfig(tracing_disabled=True))
        async for _ in run.stream_events():
            pass
        yield run.final_output


class Driver:
    def agent(self, functions: Sequence[Callable[..., Any]], script: Script, *, bare: bool = False, **options: Any) -> Any:
        tools = [function_tool(each, strict_mode=False) for each in functions]
        agent = Agent("agent", model=ScriptedModel(script), tools=tools)
        return SdkAgent(agent if bare else overspill_agent(agent, **options))

    def make_result(self, text: str, image: bytes) -> Any:
        data = base64.b64encode(image).decode()
        return [ToolOutputText(text=text), ToolOutputImage(image_url=f"data:image/png;base64,{data}")]

    def run_page(self, source: str, script: Script) -> str:
        return run_program(source, '"gpt-5"', ScriptedModel(script))


DRIVER = Driver()
