"""What frameworks themselves do about large results, to measure Overspill beside it. One file a framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.integrations.driving import Call, Request, Script


@dataclass(frozen=True)
class Task:
    """`word`: what a model would search for to find the answer. `asked`: the same as a question in words."""

    name: str
    tool: Callable[[], str]
    prompt: str
    answer: str
    word: str
    asked: str


@dataclass(frozen=True)
class Mechanism:
    """`moves`: the calls by which a model gets at what was stored, the cheapest first and the last resort at the end."""

    name: str
    agent: Callable[[Sequence[Callable[..., Any]], Script], Any]
    moves: Sequence[Callable[[Request, Task], list[Call]]] = ()
