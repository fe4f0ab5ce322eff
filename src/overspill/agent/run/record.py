"""The record of a run: its operations, accounting and conversation, and those of the agents it called."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from overspill.agent.run.turns import Outcome
from overspill.models.protocol import Message
from overspill.record.op_tree import Op


class Totals(Struct, frozen=True):
    """Sums over an agent and the agents it called."""

    calls: int = 0
    kept: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    def plus(self, other: Totals) -> Totals:
        mine, theirs = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return Totals(*(a + b for a, b in zip(mine, theirs, strict=True)))


class RunRecord(Struct):
    """Filled while the agent runs, and complete once it has ended, for whatever reason."""

    agent: str
    file: str
    question: str
    started: int
    """Unix milliseconds."""
    ended: int = 0
    session: str = ""
    outcome: Outcome = Outcome("aborted", why="The run was aborted.")
    tree: Op = Op("session", "", 0)
    own_accounting: list[dict[str, Any]] = []
    own_totals: Totals = Totals()
    messages: list[Message] = []
    answers: dict[tuple[int, str], str] = {}
    warnings: list[str] = []
    own_threads: list[str] = []
    """Tools that could not be interrupted. Their threads are still running."""
    below: list[RunRecord] = []

    @property
    def totals(self) -> Totals:
        total = self.own_totals
        for record in self.below:
            total = total.plus(record.totals)
        return total

    @property
    def threads(self) -> list[str]:
        return self.own_threads + [name for record in self.below for name in record.threads]

    @property
    def accounting(self) -> list[dict[str, Any]]:
        """Ordered by time, each entry with its agent and session."""
        own = [{**entry, "agent": self.agent, "session": self.session} for entry in self.own_accounting]
        below = [entry for record in self.below for entry in record.accounting]
        return sorted(own + below, key=lambda entry: entry["timestamp"])
