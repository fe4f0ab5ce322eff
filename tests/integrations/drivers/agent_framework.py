"""Microsoft Agent Framework: an agent whose chat client follows the script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)

from overspill.integrations.agent_framework import OverspillMiddleware
from tests.integrations.driving import Request, Script, run_program


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    def __init__(self, script: Script) -> None:
        super().__init__(function_invocation_configuration={"include_detailed_errors": True})
        self._script = script

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        def answer() -> list[Content]:
            step = self._script(_read(messages, options))
            if isinstance(step, str):
                return [Content.from_text(step)]
            return [Content.from_function_call(call.id, call.name, arguments=dict(call.args)) for call in step]

        async def respond() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", answer())])

        async def update() -> AsyncIterator[ChatResponseUpdate]:
            yield ChatResponseUpdate(role="assistant", contents=answer())

        return ResponseStream(update(), finalizer=ChatResponse.from_updates) if stream else respond()


def _read(messages: Any, options: Any) -> Request:
    contents = [content for message in messages for content in message.contents]
    results = {content.call_id: str(content.result) for content in contents if content.type == "function_result"}
    text = "\n".join([*(content.text for content in contents if content.type == "text"), *results.values()])
    tools = {tool.name: [tool.description, tool.parameters()] for tool in options.get("tools") or ()}
    items = [item for content in contents if content.type == "function_result" for item in content.items or ()]
    images = [item.uri.split(",")[1] for item in items if item.type == "data"]
    return Request(tools, results, text, len(messages), images)


class FrameworkAgent:
    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def run(self, prompt: str, conversation: str = "") -> str:
        session = AgentSession(session_id=conversation) if conversation else None
        return (await self._agent.run(prompt, session=session)).text

    def run_sync(self, prompt: str) -> str:
        return asyncio.run(self.run(prompt))

    async def stream(self, prompt: str) -> AsyncIterator[str]:
        async for update in self._agent.run(prompt, stream=True):
            yield update.text


class Driver:
    def agent(self, functions: Sequence[Callable[..., Any]], script: Script, *, bare: bool = False, **options: Any) -> Any:
        middleware = [] if bare else [OverspillMiddleware(**options)]
        return FrameworkAgent(Agent(ScriptedClient(script), tools=list(functions), middleware=middleware))

    def make_result(self, text: str, image: bytes) -> Any:
        return [Content.from_text(text), Content.from_data(image, "image/png")]

    def run_page(self, source: str, script: Script) -> str:
        return run_program(source, 'OpenAIChatClient("gpt-5")', ScriptedClient(script))


DRIVER = Driver()
