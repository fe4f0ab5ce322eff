"""agno's offloading of tool results, which needs a database."""

from __future__ import annotations

import re
import tempfile
from typing import Any

from agno.agent import Agent
from agno.db.sqlite import SqliteDb

from benchmarks.frameworks.mechanisms import Mechanism, Task
from tests.integrations.drivers.agno import ScriptedModel
from tests.integrations.driving import Call, Request


class OffloadingAgent:
    def __init__(self, functions: Any, script: Any) -> None:
        db = SqliteDb(db_file=f"{tempfile.mkdtemp()}/agno.db")
        self._agent = Agent(
            model=ScriptedModel(script=script), tools=list(functions), db=db, telemetry=False, offload_tool_results=True
        )

    async def run(self, prompt: str) -> str:
        return (await self._agent.arun(prompt)).content


def find_id(request: Request) -> str:
    found = re.search(r"res_\w+", request.results["c1"])
    assert found, request.results["c1"][:2_000]
    return found[0]


def search(request: Request, task: Task) -> list[Call]:
    return [Call("search_result", {"result_id": find_id(request), "pattern": task.word}, "c2")]


MECHANISMS = [Mechanism("agno's offloading", OffloadingAgent, [search])]
