"""The tool output limits of pydantic-ai-harness, which has to be installed: it pins its own release of Pydantic AI."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai_harness.tool_output_limits import LocalFileStore, ToolOutputLimits

from benchmarks.frameworks.mechanisms import Mechanism, Task
from tests.integrations.drivers.pydantic_ai import PydanticAgent, make_model
from tests.integrations.driving import Call, Request


def make_agent(functions: Any, script: Any) -> PydanticAgent:
    limits = ToolOutputLimits(store=LocalFileStore(Path(tempfile.mkdtemp())))
    return PydanticAgent(Agent(make_model(script), tools=functions, capabilities=[limits]))


def find_handle(request: Request) -> str:
    found = re.search(r"handle='?([^',)]+)", request.results["c1"])
    assert found, request.results["c1"][:2_000]
    return found[1]


def search(request: Request, task: Task) -> list[Call]:
    return [Call("read_tool_result", {"handle": find_handle(request), "pattern": task.word}, "c2")]


MECHANISMS = [Mechanism("pydantic-ai-harness's tool output limits", make_agent, [search])]
