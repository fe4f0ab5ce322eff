"""Answers of the four retrieval tools: exact, within one bound and the room that is left, each with the way to the rest."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from typing import Any

import anyio.to_thread
from msgspec import Struct

from overspill import read, text, tokens, wording
from overspill.answers import Answer
from overspill.decide import Pass, decide
from overspill.errors import BadRequest, HandleError, MalformedHandle, OverspillError, StoreError, UnknownHandle
from overspill.events import Retrieved, now_ms
from overspill.gate import Gate
from overspill.jobs import Job, Jobs
from overspill.ledger import Ledger
from overspill.query import query
from overspill.read import Bound, Passage, Range
from overspill.stored import Outputs, StoredOutput
from overspill.tools import TOOLS, GetArtifact, GetToolOutput, Slice, ToolOutput, arguments, parse_range
from overspill.types import Reply, Size
from overspill.wording import JobStatus

_UNBOUNDED = 1 << 40
_LEAST = 64  # bytes: an answer smaller than that could not even say how to go on


class Found(Struct, frozen=True):
    """What a retrieval says, and which stored bytes it shows."""

    text: str
    id: str = ""
    start: int = 0
    end: int = 0
    is_error: bool = False


class Retrieval:
    def __init__(self, gate: Gate, outputs: Outputs, jobs: Jobs, ledger: Ledger) -> None:
        self.turn_model: str | None = None
        self._gate = gate
        self._outputs = outputs
        self._jobs = jobs
        self._ledger = ledger
        self._shown = False

    def offered(self) -> list[str]:
        """Tools to name to the model now: from the first stored output or background job on, or only while there is one."""
        needed = bool(self._gate.kept or self._jobs.background)
        self._shown = needed or (self._shown and self._gate.settings.surface_sticky)
        return [name for name in TOOLS if name in self._gate.settings.surface] if self._shown else []
