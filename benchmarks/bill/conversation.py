"""A recorded conversation: what went into each request to the model, and what the model wrote."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal

Half = Literal["seen", "unseen"]


@dataclass(frozen=True)
class Usage:
    """What the provider billed for one request."""

    fresh: int
    cache_read: int
    cache_write: int
    output: int

    @property
    def input(self) -> int:
        return self.fresh + self.cache_read + self.cache_write


@dataclass(frozen=True)
class Result:
    tool: str
    text: str
    args: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Step:
    """One request: the model wrote `written`, then these results arrived, then perhaps a person said something."""

    written: str  # text, thinking and tool calls
    results: tuple[Result, ...] = ()
    said: str = ""
    at: float | None = None  # seconds
    usage: Usage | None = None


@dataclass(frozen=True)
class Conversation:
    id: str
    source: str
    beginning: str  # system prompt and task, if recorded
    steps: tuple[Step, ...] = field(repr=False)

    @property
    def half(self) -> Half:
        """Depends on nothing but the id, so that a conversation never changes sides."""
        return "seen" if hashlib.sha256(self.id.encode()).digest()[0] % 2 == 0 else "unseen"
