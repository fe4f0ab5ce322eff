"""Google ADK: a runner with sessions in memory, and a model that follows the script."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from overspill.integrations.google_adk import OverspillPlugin
from tests.integrations.driving import Request, Script, run_program


class ScriptedModel(BaseLlm):
    script: Any

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[LlmResponse]:
        step = self.script(_read(llm_request))
        if isinstance(step, str):
            parts = [types.Part(text=step)]
        else:
            parts = [
                types.Part(function_call=types.FunctionCall(name=call.name, args=dict(call.args), id=call.id)) for call in step
            ]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def _read(request: Any) -> Request:
    parts = [part for content in request.contents for part in content.parts]
    answers = [part.function_response for part in parts if part.function_response]
    results = {answer.id: _show(answer.response) for answer in answers}
    texts = [part.text for part in parts if part.text]
    declared = [each for tool in request.config.tools or [] for each in tool.function_declarations]
    tools = {each.name: each.model_dump(exclude_none=True) for each in declared}
    blocks = [block for answer in answers for block in answer.response.get("content", ()) if isinstance(block, dict)]
    images = [block["data"] for block in blocks if block["type"] == "image"]
    return Request(tools, results, "\n".join([*texts, *results.values()]), len(request.contents), images)


def _show(response: Any) -> str:
    value = response["result"] if list(response) == ["result"] else response
    return value if isinstance(value, str) else json.dumps(value)


class AdkAgent:
    def __init__(self, runner: InMemoryRunner) -> None:
        self._runner = runner

    async def _begin(self, conversation: str) -> str:
        id = conversation or uuid.uuid4().hex
        await self._runner.session_service.create_session(app_name=self._runner.app_name, user_id="user", session_id=id)
        return id

    async def stream(self, prompt: str, conversation: str = "") -> AsyncIterator[str]:
        id = await self._begin(conversation)
        message = types.Content(role="user", parts=[types.Part(text=prompt)])
        async for event in self._runner.run_async(user_id="user", session_id=id, new_message=message):
            if event.is_final_response() and event.content:
                yield "".join(part.text or "" for part in event.content.parts)

    async def run(self, prompt: str, conversation: str = "") -> str:
        return "".join([piece async for piece in self.stream(prompt, conversation)])

    def run_sync(self, prompt: str) -> str:
        id = self._runner.session_service.create_session_sync(app_name=self._runner.app_name, user_id="user").id
        message = types.Content(role="user", parts=[types.Part(text=prompt)])
        events = self._runner.run(user_id="user", session_id=id, new_message=message)
        return "".join(event.content.parts[0].text for event in events if event.is_final_response())


class Driver:
    def agent(self, functions: Sequence[Callable[..., Any]], script: Script, *, bare: bool = False, **options: Any) -> Any:
        plugins = [] if bare else [OverspillPlugin(**options)]
        agent = LlmAgent(name="helper", model=ScriptedModel(model="scripted", script=script), tools=list(functions))
        return AdkAgent(InMemoryRunner(app=App(name="suite", root_agent=agent, plugins=plugins)))

    def make_result(self, text: str, image: bytes) -> Any:
        shown = {"type": "image", "data": base64.b64encode(image).decode(), "mimeType": "image/png"}
        return {"content": [{"type": "text", "text": text}, shown]}

    def run_page(self, source: str, script: Script) -> str:
        return run_program(source, '"gemini-2.5-flash"', ScriptedModel(model="scripted", script=script))


DRIVER = Driver()
