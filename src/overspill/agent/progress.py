"""What whoever watches a run is told, as it happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from overspill.types import Kept


class TurnStarted(Struct, frozen=True):
    agent: str
    turn: int
    of: int
    percent: int
    """Of the context window that is used."""
    final: str = ""


class ModelAnswered(Struct, frozen=True):
    agent: str
    model: str
    seconds: float
    error: str = ""


class CallStarted(Struct, frozen=True):
    agent: str
    id: str
    tool: str


class CallEnded(Struct, frozen=True):
    agent: str
    id: str
    tool: str
    seconds: float
    failed: str = ""
    """The beginning of what went wrong."""
    kept: Kept | None = None
    job: str = ""
    """The id under which it goes on in the background."""


class ModelSaid(Struct, frozen=True):
    """What the agent says it is doing, or what somebody should know about the run."""

    agent: str
    text: str
    warning: bool = False


Progress: TypeAlias = TurnStarted | ModelAnswered | CallStarted | CallEnded | ModelSaid
Observe: TypeAlias = Callable[[Progress], None]


def ignore_progress(_: Progress) -> None:
    """For a run that nobody watches."""
