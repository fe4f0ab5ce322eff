"""Strands' context offloader."""

from __future__ import annotations

import re
from typing import Any

from strands import tool
from strands.vended_plugins.context_offloader import ContextOffloader, InMemoryStorage

from benchmarks.frameworks.mechanisms import Mechanism, Task
from tests.integrations.drivers.strands import ScriptedModel, StrandsAgent
from tests.integrations.driving import Call, Request


def make_agent(functions: Any, script: Any) -> StrandsAgent:
    plugins = [ContextOffloader(storage=InMemoryStorage())]
    return StrandsAgent(model=ScriptedModel(script), tools=[tool(each) for each in functions], plugins=plugins)


def find_reference(request: Request) -> str:
    found = re.search(r"\[Stored references:\]\s+(\S+)", request.results["c1"])
    assert found, request.results["c1"][-2_000:]
    return found[1]


def search(request: Request, task: Task) -> list[Call]:
    return [Call("retrieve_offloaded_content", {"reference": find_reference(request), "pattern": task.word}, "c2")]


def read_all(request: Request, task: Task) -> list[Call]:
    return [Call("retrieve_offloaded_content", {"reference": find_reference(request)}, "c3")]


MECHANISMS = [Mechanism("Strands' context offloader", make_agent, [search, read_all])]
