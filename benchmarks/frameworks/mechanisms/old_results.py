"""A long conversation, and at its end a question about its first result: what is sent, and whether the answer is still there."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from benchmarks.frameworks.mechanisms import Mechanism, Task
from benchmarks.frameworks.mechanisms.context import count
from tests.integrations.driving import Call, Request, Step
from tests.integrations.suite import find_name

PAGES = 20
WINDOW = 32_000
SHARE = 0.7
ANSWER = "line 77 of page 0 says 4711"


def read_page(number: int) -> str:
    """Read a page."""
    lines = [f"line {line} of page {number} says {line * 31 + number}" for line in range(180)]
    return "\n".join(ANSWER if line.startswith("line 77 of page 0 ") else line for line in lines)


@dataclass(frozen=True)
class Sent:
    """In tokens. `changes`: how often a request differs from the one before it in what that one had, and the provider's cache
    ends there."""

    is_answered: bool
    largest: int
    all: int
    changes: int


class Reader:
    """A model that reads one page a turn, and gets a question about the first page at the end."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.requests: list[Request] = []
        self._moves = list(mechanism.moves)

    def __call__(self, request: Request) -> Step:
        self.requests.append(request)
        number = len(self.requests) - 1
        if number < PAGES:
            return [Call("read_page", {"number": number}, f"c{number}")]
        if ANSWER in request.text:
            return "found"
        return self._moves.pop(0)(request, ASKED) if self._moves else "not found"


ASKED = Task("", lambda: "", "", ANSWER, "line 77 of page 0 ", "line 77 of page 0")


async def measure_sent(mechanism: Mechanism) -> Sent:
    model = Reader(mechanism)
    answer = await mechanism.agent([read_page], model).run("Read all pages. What does line 77 of page 0 say?")
    sizes = [count(request.text) for request in model.requests]
    pairs = pairwise(model.requests)
    changes = sum(any(now.results[id] != text for id, text in before.results.items()) for before, now in pairs)
    return Sent(answer == "found", max(sizes), sum(sizes), changes)


def search_stored(request: Request, task: Task) -> list[Call]:
    return [Call("get_tool_output", {"id": find_name(request.results["c0"]), "mode": "grep", "pattern": task.word}, "c99")]
