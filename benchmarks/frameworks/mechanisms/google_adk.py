"""ADK has artifacts: a tool saves its result as one, and the model loads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import InMemoryRunner
from google.adk.tools import ToolContext, load_artifacts
from google.genai import types

from benchmarks.frameworks.mechanisms import Mechanism, Task
from tests.integrations.drivers.google_adk import AdkAgent, ScriptedModel
from tests.integrations.driving import Call, Request


def save_result(function: Callable[[], str]) -> Callable[..., Any]:
    async def tool(tool_context: ToolContext) -> dict[str, Any]:
        data = function().encode()
        await tool_context.save_artifact("result.txt", types.Part.from_bytes(data=data, mime_type="text/plain"))
        return {"saved_as": "result.txt", "bytes": len(data)}

    tool.__name__, tool.__doc__ = function.__name__, function.__doc__
    return tool


def make_agent(functions: Any, script: Any) -> AdkAgent:
    tools = [*map(save_result, functions), load_artifacts]
    agent = LlmAgent(name="helper", model=ScriptedModel(model="scripted", script=script), tools=tools)
    return AdkAgent(InMemoryRunner(app=App(name="benchmark", root_agent=agent)))


def load(request: Request, task: Task) -> list[Call]:
    return [Call("load_artifacts", {"artifact_names": ["result.txt"]}, "c2")]


MECHANISMS = [Mechanism("ADK's artifacts", make_agent, [load])]
