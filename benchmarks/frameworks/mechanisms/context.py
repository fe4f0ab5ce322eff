"""What enters the context until the right answer, with the same scripted model: it answers as soon as it has read the answer, and
otherwise makes the next of the moves that the mechanism gives it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.frameworks.mechanisms import Mechanism, Task
from overspill.text import tokens
from tests.integrations.driving import Call, Driver, Request, Step
from tests.integrations.suite import LINES, NEEDLE, ONE_LINE, extract, read_log


def export() -> str:
    """Export all orders."""
    return ONE_LINE


# The prompts do not say what is sought, so that the search is part of the task.
TASKS = [
    Task("unusual line of a 500 KB log", read_log, "Read the log.", NEEDLE, "refused", "the order that was refused"),
    Task("usual line of a 500 KB log", read_log, "Read the log.", LINES[4_711], "004711", "request 004711"),
    Task("990 KB of JSON in one line", export, "Export all orders.", NEEDLE, "refused", "the order that was refused"),
]


@dataclass(frozen=True)
class Spent:
    """`entered`: tokens of results until the answer, or until no move was left. `offered`: of tools and instructions, with each
    request. `calls`: of tools."""

    is_answered: bool
    entered: int
    offered: int
    calls: int


class Model:
    def __init__(self, task: Task, mechanism: Mechanism) -> None:
        self.requests: list[Request] = []
        self._task, self._moves = task, [call_tool, *mechanism.moves]

    def __call__(self, request: Request) -> Step:
        self.requests.append(request)
        if self._task.answer in request.text:
            return "found"
        number = len(self.requests) - 1
        return self._moves[number](request, self._task) if number < len(self._moves) else "not found"


def call_tool(request: Request, task: Task) -> list[Call]:
    return [Call(task.tool.__name__)]


async def measure_spent(mechanism: Mechanism, task: Task) -> Spent:
    model = Model(task, mechanism)
    answer = await mechanism.agent([task.tool], model).run(task.prompt)
    first, last = model.requests[0], model.requests[-1]
    entered = count(last.text) - count(first.text)
    return Spent(answer == "found", entered, count(first.text) + count(first.tools), len(model.requests) - 1)


def count(value: Any) -> int:
    return tokens.count(value if isinstance(value, str) else json.dumps(value, default=str), None).tokens


def make_ours(driver: Driver, **options: Any) -> Mechanism:
    agent: Callable[..., Any] = lambda functions, model: driver.agent(functions, model, **options)  # noqa: E731
    return Mechanism("Overspill", agent, [lambda request, task: extract(request, task.asked)])


def make_bare(driver: Driver) -> Mechanism:
    return Mechanism("nothing", lambda functions, model: driver.agent(functions, model, bare=True))
