"""What a session has while it is open: the rooms, wired to one shelf."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from overspill.budget import ContextBudget
from overspill.calls.service import CallService
from overspill.gate.gate import Gate
from overspill.record import events
from overspill.record.events import OutputStored
from overspill.record.ledger import Ledger
from overspill.retrieval.extractor import Extractor
from overspill.retrieval.group import SessionGroup
from overspill.retrieval.handlers import RetrievalTools
from overspill.retrieval.outputs import StoredOutputs
from overspill.settings import Settings
from overspill.store.protocols import Shelf


class SessionParts:
    def __init__(
        self,
        settings: Settings,
        shelf: Shelf,
        ledger: Ledger,
        extractor: Extractor,
        budget: ContextBudget | None,
        family: SessionGroup | None,
        *,
        notice: bool,
    ) -> None:
        self.shelf = shelf
        self.budget = budget
        self.ledger = ledger
        self.gate = Gate(settings, shelf, self.ledger, budget)
        self.outputs = StoredOutputs(shelf, self.gate.kept, self.gate.checkpoints, self.gate.held, family)
        self.calls = CallService(self.gate, self.ledger, self.outputs.resolve, budget=budget, notice=notice)
        self.outputs.jobs = self.calls.jobs.background
        self.extractor = extractor
        self.retrieval = RetrievalTools(self.gate, self.outputs, self.calls.jobs, self.ledger, extractor)
        for event in events.decode_events(shelf.journal()):
            self.ledger.counters.add(event)
            if isinstance(event, OutputStored):
                self.gate.kept.add(event.kept)

    def close(self) -> None:
        self.outputs.close()
        if self.budget is not None:
            self.ledger.note_settlements(self.budget)
        self.ledger.close()
        self.shelf.close()


@asynccontextmanager
async def hold_shelf(opening: Callable[[], Shelf]) -> AsyncGenerator[Shelf]:
    """A shelf for a session that is about to open, closed again where it does not: nobody else knows of it."""
    found: list[Shelf] = []
    wanted = True

    def work() -> None:
        found.append(opening())
        if not wanted:  # whoever asked is gone, and the thread could not be interrupted
            found[0].close()

    try:
        await anyio.to_thread.run_sync(work)
        yield found[0]
    except BaseException:
        wanted = False
        with anyio.CancelScope(shield=True):
            for shelf in found:
                await anyio.to_thread.run_sync(shelf.close)
        raise
