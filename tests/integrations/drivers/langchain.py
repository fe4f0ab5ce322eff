"""LangChain: `create_agent` with a chat model that follows the script."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver

from overspill.integrations.langchain import OverspillMiddleware
from tests.integrations.driving import Request, Script, run_program


class ScriptedModel(BaseChatModel):
    script: Any
    offered: tuple[Any, ...] = ()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> ScriptedModel:
        return ScriptedModel(script=self.script, offered=tuple(tools))

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        step = self.script(_read(messages, self.offered))
        if isinstance(step, str):
            answer = AIMessage(step)
        else:
            answer = AIMessage("", tool_calls=[{"name": call.name, "args": dict(call.args), "id": call.id} for call in step])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _read(messages: list[BaseMessage], offered: tuple[Any, ...]) -> Request:
    results = {message.tool_call_id: message.text for message in messages if isinstance(message, ToolMessage)}
    functions = [convert_to_openai_tool(each)["function"] for each in offered]
    tools = {each["name"]: each for each in functions}
    text = "\n".join(message.text for message in messages)
    blocks = [block for message in messages if isinstance(message.content, list) for block in message.content]
    images = [block["base64"] for block in blocks if isinstance(block, dict) and block["type"] == "image"]
    return Request(tools, results, text, len(messages), images)


class LangChainAgent:
    def __init__(self, *parts: Any, middleware: Any) -> None:
        """LangGraph refuses to run without a thread where there is a checkpointer, so there is an agent for each case."""
        self._agent = create_agent(*parts, middleware=middleware)
        self._with_threads = create_agent(*parts, middleware=middleware, checkpointer=InMemorySaver())

    async def run(self, prompt: str, conversation: str = "") -> str:
        agent = self._with_threads if conversation else self._agent
        state = await agent.ainvoke(_input(prompt), {"configurable": {"thread_id": conversation}} if conversation else None)
        return state["messages"][-1].text

    def run_sync(self, prompt: str) -> str:
        return self._agent.invoke(_input(prompt))["messages"][-1].text

    async def stream(self, prompt: str) -> AsyncIterator[str]:
        async for update in self._agent.astream(_input(prompt), stream_mode="updates"):
            for change in update.values():
                for message in (change or {}).get("messages", ()):
                    if isinstance(message, AIMessage):
                        yield message.text


def _input(prompt: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": prompt}]}


class Driver:
    def agent(self, functions: Sequence[Callable[..., Any]], script: Script, *, bare: bool = False, **options: Any) -> Any:
        middleware = [] if bare else [OverspillMiddleware(**options)]
        model, tools = ScriptedModel(script=script), [tool(each) for each in functions]
        return LangChainAgent(model, tools, middleware=middleware)

    def make_result(self, text: str, image: bytes) -> Any:
        data = base64.b64encode(image).decode()
        return [{"type": "text", "text": text}, {"type": "image", "base64": data, "mime_type": "image/png"}]

    def run_page(self, source: str, script: Script) -> str:
        return run_program(source, '"openai:gpt-5"', ScriptedModel(script=script))


DRIVER = Driver()
