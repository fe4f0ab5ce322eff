"""What the suite and the drivers say to each other. A driver puts a scripted model and plain functions into its framework."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias


@dataclass(frozen=True)
class Call:
    """A tool call that the scripted model makes."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    id: str = "c1"


@dataclass(frozen=True)
class Request:
    """What the model was sent. `tools`: by name, description and schema. `results`: by call id, the text of each tool result.
    `text`: all that is written in it. `images`: their bytes in Base64, in order."""

    tools: Mapping[str, Any]
    results: Mapping[str, str]
    text: str
    messages: int
    images: Sequence[str] = ()


Step: TypeAlias = Sequence[Call] | str
"""Tool calls, or the final answer."""
Script: TypeAlias = Callable[[Request], Step]


class Agent(Protocol):
    """An agent of the framework, with Overspill in it."""

    async def run(self, prompt: str, conversation: str = "") -> str:
        """The final answer. A framework's conversation id, or none."""
        ...

    async def stream(self, prompt: str) -> AsyncIterator[str]: ...

    def run_sync(self, prompt: str) -> str: ...


class Driver(Protocol):
    def agent(self, functions: Sequence[Callable[..., Any]], script: Script, **options: Any) -> Agent:
        """`options` are those of the adapter: `settings`, `session`, `budget`. `bare=True`: without the adapter."""
        ...

    def make_result(self, text: str, image: bytes) -> Any:
        """What a tool of the framework returns to show the model a text and a PNG."""
        ...

    def run_page(self, source: str, script: Script) -> str:
        """Run the program of the framework's page with the scripted model in place of a real one. Returns what it prints."""
        ...


def run_program(source: str, model: str, scripted: Any) -> str:
    """`model` is what the program says where a real model belongs."""
    assert model in source
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(source.replace(model, "SCRIPTED"), "page", "exec"), {"SCRIPTED": scripted, "__name__": "page"})  # noqa: S102
    return printed.getvalue()


class Scripted:
    """A script that goes through steps in order, and remembers every request."""

    def __init__(self, *steps: Step | Script) -> None:
        self.requests: list[Request] = []
        self._steps = steps

    def __call__(self, request: Request) -> Step:
        self.requests.append(request)
        step = self._steps[len(self.requests) - 1]
        return step(request) if callable(step) else step

    @property
    def last(self) -> Request:
        return self.requests[-1]
