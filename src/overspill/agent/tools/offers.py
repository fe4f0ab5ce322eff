"""A tool that an agent's model can call: its description, and what runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from overspill.reading.references import Check
from overspill.types import Kind, Output


class OfferedTool(Struct, frozen=True):
    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[..., Any]
    """Called with keyword arguments. Its result passes the gate."""
    server: str = ""
    kind: Kind = "function"
    check: Check | None = None
    """Checks arguments into which stored outputs were filled."""

    @property
    def definition(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "parameters": self.parameters}


def failure(text: str) -> Output:
    """The output of a tool that failed, in its own words."""
    return Output([{"type": "text", "text": text}], is_error=True)
