"""deepagents puts results over 20,000 tokens into a file of its own file system, with tools to search and read files. LangChain's
context editing clears old results."""

from __future__ import annotations

from functools import partial
from typing import Any

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
from langchain_core.outputs import ChatResult
from langchain_core.tools import tool

from benchmarks.frameworks.mechanisms import Mechanism, Task
from benchmarks.frameworks.mechanisms.context import count
from benchmarks.frameworks.mechanisms.old_results import SHARE, WINDOW, search_stored
from overspill.integrations.langchain import OverspillMiddleware
from tests.integrations.drivers.langchain import ScriptedModel
from tests.integrations.driving import Call, Request


class CountingModel(ScriptedModel):
    """Says how many tokens a request had, as providers do."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> ScriptedModel:
        return CountingModel(script=self.script, offered=tuple(tools))

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> ChatResult:
        result = super()._generate(messages, *args, **kwargs)
        used = sum(count(message.text) for message in messages)
        answer: Any = result.generations[0].message
        answer.usage_metadata = {"input_tokens": used, "output_tokens": 0, "total_tokens": used}
        return result


class Agent:
    def __init__(self, functions: Any, script: Any, create: Any = create_agent, **options: Any) -> None:
        self._agent = create(CountingModel(script=script), [tool(each) for each in functions], **options)

    async def run(self, prompt: str) -> str:
        state = await self._agent.ainvoke({"messages": [{"role": "user", "content": prompt}]}, {"recursion_limit": 100})
        return state["messages"][-1].text


def search(request: Request, task: Task) -> list[Call]:
    return [Call("grep", {"pattern": task.word, "path": "/large_tool_results/", "output_mode": "content"}, "c2")]


def read(request: Request, task: Task) -> list[Call]:
    return [Call("read_file", {"file_path": "/large_tool_results/c1", "offset": 0, "limit": 2_000}, "c3")]


def clear_results(functions: Any, script: Any) -> Agent:
    edit = ClearToolUsesEdit(trigger=int(SHARE * WINDOW))
    return Agent(functions, script, middleware=[ContextEditingMiddleware(edits=[edit])])


def compact_results(functions: Any, script: Any) -> Agent:
    return Agent(functions, script, middleware=[OverspillMiddleware(budget=WINDOW, compact=SHARE)])


MECHANISMS = [Mechanism("deepagents' offload", partial(Agent, create=create_deep_agent), [search, read])]
OLD_RESULTS = [
    Mechanism("nothing", Agent),
    Mechanism("LangChain's context editing", clear_results),
    Mechanism("Overspill's `compact`", compact_results, [search_stored]),
]
