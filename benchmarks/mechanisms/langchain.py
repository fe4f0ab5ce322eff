"""deepagents puts results over 20,000 tokens into a file of its own file system, with tools to search and read files."""

from __future__ import annotations

from typing import Any

from deepagents import create_deep_agent
from langchain_core.tools import tool

from benchmarks.mechanisms import Mechanism, Task
from tests.integrations.drivers.langchain import ScriptedModel
from tests.integrations.driving import Call, Request


class DeepAgent:
    def __init__(self, functions: Any, script: Any) -> None:
        self._agent = create_deep_agent(ScriptedModel(script=script), [tool(each) for each in functions])

    async def run(self, prompt: str) -> str:
        state = await self._agent.ainvoke({"messages": [{"role": "user", "content": prompt}]}, {"recursion_limit": 100})
        return state["messages"][-1].text


def search(request: Request, task: Task) -> list[Call]:
    return [Call("grep", {"pattern": task.word, "path": "/large_tool_results/", "output_mode": "content"}, "c2")]


def read(request: Request, task: Task) -> list[Call]:
    return [Call("read_file", {"file_path": "/large_tool_results/c1", "offset": 0, "limit": 2_000}, "c3")]


MECHANISMS = [Mechanism("deepagents' offload", DeepAgent, [search, read])]
