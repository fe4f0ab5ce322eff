"""A tool that an agent's model may call: how it is described, and what runs."""

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
    """Called with the arguments by name. What it returns passes the gate."""
    server: str = ""
    kind: Kind = "function"
    check: Check | None = None
    """What is wrong with arguments into which a stored output was filled."""

    @property
    def definition(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "parameters": self.parameters}


def failure(text: str) -> Output:
    """For a tool that failed in a way it can word itself."""
    return Output([{"type": "text", "text": text}], is_error=True)
