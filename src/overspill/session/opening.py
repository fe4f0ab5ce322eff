"""What is set up each time a session is opened."""

from __future__ import annotations

from collections.abc import Mapping

import anyio.to_thread
from msgspec import Struct

from overspill import handles
from overspill.budget import ContextBudget
from overspill.models.endpoints import Endpoint
from overspill.models.protocol import Model
from overspill.record.ledger import Ledger
from overspill.record.observers import Observers
from overspill.retrieval.extractor import Extractor, configured_endpoints
from overspill.retrieval.group import SessionGroup
from overspill.session import checks
from overspill.session.parts import SessionParts, hold_shelf
from overspill.settings import Settings
from overspill.store.open import is_on_server
from overspill.store.protocols import Store
from overspill.task_queue.address import QueueAddress
from overspill.task_queue.remote import open_queue


class SessionOpening(Struct, frozen=True, kw_only=True):
    """What a session was given. It stays the same each time the session is opened."""

    settings: Settings
    store: Store
    id: str = ""
    """For the first time, if the session is not one that the store has already."""
    name: str = ""
    family: str = ""
    is_shared: bool = False
    budget: ContextBudget | None = None
    models: Mapping[str, Model] = {}
    endpoints: Mapping[str, Endpoint] = {}
    observers: Observers = ()
    notice: bool = True
    jobs: QueueAddress | None = None
    writes_off_loop: bool = True
    """Whether the journal in a store on a server is written by a thread. Replies wait for it, but tools begin before it is."""

    @classmethod
    def of(
        cls,
        settings: Settings | None,
        store: Store | str | None,
        *,
        name: str,
        shared: bool,
        family: str,
        jobs: str | None,
        budget: ContextBudget | None,
        models: Mapping[str, Model] | None,
        endpoints: Mapping[str, Endpoint] | None,
        observers: Observers,
        notice: bool,
    ) -> SessionOpening:
        """From what a program passes to a session."""
        checks.check_session(settings, budget, store, name=name, family=family, models=models, endpoints=endpoints)
        settings = settings or Settings()
        id, is_shared = handles.new(), shared or jobs is not None
        name = name or ("" if family or jobs is None else id)
        family = checks.find_family(name, family, shared=is_shared)
        return cls(
            settings=settings,
            id=id,
            name=f"{family}/{id}" if family and (is_shared or not name) else name,
            family=family,
            is_shared=is_shared,
            budget=budget,
            store=checks.find_store(store, settings),
            models=models or {},
            endpoints={**configured_endpoints(settings, {}), **(endpoints or {})},
            observers=checks.check_observers(observers),
            notice=notice,
            jobs=checks.find_queue(jobs),
        )

    async def open(self, id: str) -> SessionParts:
        """`id` is for a session without a name."""
        async with hold_shelf(self.store, self.settings, id, self.name) as shelf:
            ledger = Ledger(
                shelf.session,
                shelf.append_journal,
                shelf.journal,
                self.observers,
                stored_level=self.settings.wording.stored_level,
                is_off_loop=self.writes_off_loop and is_on_server(self.store.url),
            )
            extractor = Extractor(self.settings, ledger, self.models, self.endpoints)
            group = SessionGroup(self.store, self.family, shelf.session if self.is_shared else "") if self.family else None
            inherits = group is not None and await anyio.to_thread.run_sync(group.has_outputs)
            queue = None if self.jobs is None else open_queue(self.jobs)
            parts = SessionParts(
                self.settings, shelf, ledger, extractor, self.budget, group, queue, notice=self.notice, inherits=inherits
            )
            if shelf.session != id:
                await anyio.to_thread.run_sync(parts.remove_unrecorded)
            await parts.calls.jobs.open()
            return parts
