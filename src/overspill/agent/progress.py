"""The events that an observer of a run receives."""

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
    """How much of the context window is used."""
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
    """The beginning of the error message."""
    kept: Kept | None = None
    job: str = ""
    """The id of the background job, if the call keeps running in the background."""


class ModelSaid(Struct, frozen=True):
    """The status that the model reports, or a warning about the run."""

    agent: str
    text: str
    warning: bool = False


Progress: TypeAlias = TurnStarted | ModelAnswered | CallStarted | CallEnded | ModelSaid
Observe: TypeAlias = Callable[[Progress], None]
