"""agno: an agent whose model follows the script. With a conversation, it has a database."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.media import Image
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.run import RunStatus
from agno.tools.function import ToolResult

from overspill.integrations.agno import overspill
from tests.integrations.driving import Request, Script, run_program


@dataclass
class ScriptedModel(Model):
    id: str = "scripted"
    script: Any = None

    def invoke(self, messages: Any, *args: Any, tools: Any = None, **kwargs: Any) -> ModelResponse:
        step = self.script(_read(messages, tools or []))
        if isinstance(step, str):
            return ModelResponse(role="assistant", content=step)
        calls = [{"name": call.name, "arguments": json.dumps(dict(call.args))} for call in step]
        made = [{"id": each.id, "type": "function", "function": call} for each, call in zip(step, calls, strict=True)]
        return ModelResponse(role="assistant", tool_calls=made)

    async def ainvoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return self.invoke(*args, **kwargs)

    def invoke_stream(self, *args: Any, **kwargs: Any) -> Any:
        yield self.invoke(*args, **kwargs)

    async def ainvoke_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ModelResponse]:
        yield self.invoke(*args, **kwargs)

    def _parse_provider_response(self, response: Any, **kwargs: Any) -> ModelResponse:
        return response

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        return response


def _read(messages: Any, tools: Any) -> Request:
    results = {each.tool_call_id: each.get_content_string() for each in messages if each.role == "tool"}
    text = "\n".join(each.get_content_string() for each in messages)
    images = [base64.b64encode(image.content).decode() for each in messages for image in each.images or ()]
    return Request({each["function"]["name"]: each["function"] for each in tools}, results, text, len(messages), images)


def _answer(output: Any) -> str:
    if output.status == RunStatus.error:
        raise RuntimeError(output.content)
    return output.content


class AgnoAgent:
    def __init__(self, **parts: Any) -> None:
        self._agent = Agent(**parts, telemetry=False)
        self._with_sessions = Agent(**parts, telemetry=False, db=InMemoryDb())

    async def run(self, prompt: str, conversation: str = "") -> str:
        if conversation:
            return _answer(await self._with_sessions.arun(prompt, session_id=conversation))
        return _answer(await self._agent.arun(prompt))

    def run_sync(self, prompt: str) -> str:
        return _answer(self._agent.run(prompt))

    async def stream(self, prompt: str) -> AsyncIterator[str]:
        async for event in self._agent.arun(prompt, stream=True):
            if event.event == "RunContent":
                yield event.content or ""


class Driver:
    def agent(self, functions: Sequence[Callable[..., Any]], script: Script, *, bare: bool = False, **options: Any) -> Any:
        parts = {"tools": list(functions)} if bare else overspill(tools=functions, **options)
        return AgnoAgent(model=ScriptedModel(script=script), **parts)

    def make_result(self, text: str, image: bytes) -> Any:
        return ToolResult(content=text, images=[Image(content=image, mime_type="image/png")])

    def run_page(self, source: str, script: Script) -> str:
        return run_program(source, 'OpenAIChat(id="gpt-5")', ScriptedModel(script=script))


DRIVER = Driver()
