"""What is set up each time a session is opened."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

import anyio.to_thread
from msgspec import Struct

from overspill.budget import ContextBudget
from overspill.models.endpoints import Endpoint
from overspill.models.protocol import Model
from overspill.record.ledger import Ledger
from overspill.record.observers import Observers
from overspill.retrieval.extractor import Extractor
from overspill.retrieval.group import SessionGroup
from overspill.session.parts import SessionParts, hold_shelf
from overspill.settings import Settings
from overspill.store.open import is_on_server
from overspill.store.protocols import Store
from overspill.task_queue.address import QueueAddress
from overspill.task_queue.opening import open_queue
from overspill.task_queue.remote import RemoteTools


class Opening(Struct, frozen=True):
    """What a session was given that stays the same however often it is opened."""

    settings: Settings
    store: Store
    models: Mapping[str, Model]
    endpoints: Mapping[str, Endpoint]
    observers: Observers
    notice: bool
    jobs: QueueAddress | None = None
    writes_off_loop: bool = True
    """Whether the journal in a store on a server is written by a thread. Replies wait for it, but tools begin before it is."""

    async def open(self, id: str, name: str, family: str, budget: ContextBudget | None, *, is_shared: bool) -> SessionParts:
        """`id` is for a session without a name."""
        async with hold_shelf(self.store, self.settings, id, name) as shelf:
            ledger = Ledger(shelf.session, shelf.append_journal, shelf.journal, self.observers)
            ledger.stored_level = logging.WARNING if self.settings.follows_document else logging.INFO
            ledger.is_off_loop = self.writes_off_loop and is_on_server(self.store.url)
            extractor = Extractor(self.settings, ledger, self.models, self.endpoints)
            group = SessionGroup(self.store, family, shelf.session if is_shared else "") if family else None
            parts = SessionParts(self.settings, shelf, ledger, extractor, budget, group, notice=self.notice)
            if shelf.session != id:
                await anyio.to_thread.run_sync(parts.remove_unrecorded)
            parts.retrieval.inherits = group is not None and await anyio.to_thread.run_sync(group.has_outputs)
            if self.jobs is not None:
                assert group is not None
                parts.remote = RemoteTools(open_queue(self.jobs), group, partial(parts.keep, count_tokens=False), self.settings)
            await parts.calls.jobs.open()
            return parts
