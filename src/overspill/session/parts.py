"""The parts of an open session, wired to one shelf."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, cast

import anyio
import anyio.to_thread
from msgspec import Struct

from overspill import handles
from overspill.budget import ContextBudget
from overspill.calls.background import BackgroundJobs, recall_job
from overspill.calls.job import Job
from overspill.calls.service import CallService
from overspill.errors import BadRequest, HandleError, StoreError, require
from overspill.extraction import Progress
from overspill.gate.collect import CollectedResult, block_text, is_blocks
from overspill.gate.gate import Gate
from overspill.gate.kept import KnownOutputs
from overspill.gate.recorder import ReplyRecorder
from overspill.gate.serialise import to_json
from overspill.models.endpoints import Endpoint
from overspill.models.protocol import Model
from overspill.programs.service import NAME as PROGRAM
from overspill.programs.service import Programs
from overspill.record import events
from overspill.record.events import JobChanged, OutputStored
from overspill.record.ledger import Ledger
from overspill.record.logs import Observers, logger
from overspill.redaction.policy import Redaction
from overspill.retrieval.definitions import offered_tools
from overspill.retrieval.delivery import PassageSearch, SessionJobs, StandIns
from overspill.retrieval.extractor import ExtractionRequest, Extractor
from overspill.retrieval.group import SessionGroup
from overspill.retrieval.handlers import RetrievalTools
from overspill.retrieval.jobs import JobsElsewhere, describe_job
from overspill.retrieval.outputs import StoredOutputs
from overspill.retrieval.tables import OutputTables
from overspill.session.compaction import Compactor
from overspill.settings import Settings
from overspill.store.away import WaitingShelf
from overspill.store.open import is_on_server
from overspill.store.protocols import KeepLimits, Shelf, Store
from overspill.store.spool import Spool
from overspill.task_queue.address import QueueAddress
from overspill.task_queue.remote import RemoteTools, open_queue
from overspill.text.tokens import ESTIMATE
from overspill.types import Extraction, JobInfo, Kept, Output, Reply, ToolCall
from overspill.wording.slow_tools import JobStatus


class SessionOpening(Struct, frozen=True, kw_only=True):
    """The arguments of a session. They stay the same each time the session is opened."""

    settings: Settings
    store: Store
    redaction: Redaction
    id: str = ""
    """The id to use when the session is opened for the first time, if the store does not have it yet."""
    name: str = ""
    family: str = ""
    is_shared: bool = False
    budget: ContextBudget | None = None
    models: Mapping[str, Model] = {}
    endpoints: Mapping[str, Endpoint] = {}
    observers: Observers = ()
    notice: bool = True
    preload: bool = False
    """Whether to load the vocabulary that counts tokens when the session begins."""
    jobs: QueueAddress | None = None
    writes_off_loop: bool = True
    """Whether a thread writes the journal of a store on a server. Replies wait for it, but tools start without waiting."""


class SessionParts:
    def __init__(self, opening: SessionOpening, shelf: Shelf, family: SessionGroup | None, *, inherits: bool) -> None:
        settings, budget, redaction = opening.settings, opening.budget, opening.redaction
        is_off_loop, level = opening.writes_off_loop and is_on_server(opening.store.url), settings.wording.stored_level
        ledger = Ledger(
            shelf.session, shelf.append_journal, shelf.journal, opening.observers, stored_level=level, is_off_loop=is_off_loop
        )
        extractor = Extractor(settings, ledger, opening.models, opening.endpoints)
        queue = None if opening.jobs is None else open_queue(opening.jobs)
        self.shelf, self.budget, self.ledger, self.extractor, self.family = shelf, budget, ledger, extractor, family
        self.recorder = recorder = ReplyRecorder(shelf, ledger, redaction.redact_recorded, is_on=settings.record == "replies")
        jobs, known = BackgroundJobs(partial(recall_job, ledger)), KnownOutputs(ledger, family.list_names if family else tuple)
        self.outputs = outputs = StoredOutputs(shelf, known, family, jobs, settings.wording, redaction)
        self.gate = gate = Gate(settings, shelf, ledger, budget, known, PassageSearch(outputs, extractor), redaction)
        self._elsewhere = elsewhere = JobsElsewhere(family) if family is not None and family.is_shared else None
        attend = None if elsewhere is None else elsewhere.cancel_if_aborted
        stand_ins = StandIns(gate, outputs)
        self.calls = CallService(gate, recorder, outputs.resolve, stand_ins.word, jobs, attend, notice=opening.notice)
        self.tables = OutputTables(gate, outputs)
        self.retrieval = RetrievalTools(
            gate, outputs, self.calls.jobs, recorder, extractor, stand_ins, self.tables, elsewhere, inherits
        )
        self.jobs = SessionJobs(self.calls, stand_ins, recorder, family)
        self.programs = Programs(self.tables, extractor, self.calls)
        keep_arguments = partial(self.keep, count_tokens=False)
        self.remote = RemoteTools(queue, family, keep_arguments, settings) if queue is not None and family is not None else None
        self._earlier_replies: set[str] = set()
        self._recall()
        keep, earlier = partial(self.keep, count_tokens=True), self.gate.kept.latest()
        self.compactor = Compactor(keep, settings, offered_tools(settings), budget, partial(self._find_readable, earlier))

    def _recall(self) -> None:
        """Restore what happened before the session was opened again. There may be very many events, so they are read once."""
        count, add, note = self.ledger.counters.add, self.gate.kept.add, self.gate.names.note
        unknown: list[bytes] = []
        for event in events.decode_events(self.shelf.journal(), unknown.append):
            count(event)
            if isinstance(event, OutputStored):
                kept = event.kept
                add(kept)
                note(kept.id, kept.name_chars)
            elif isinstance(event, JobChanged):
                self.calls.jobs.background.note_earlier(event)
            else:
                self._earlier_replies.update(reply.id for reply in events.find_replies(event))
        self._knows_all_events = not unknown

    def remove_unrecorded(self) -> None:
        """For a session that was opened again: its previous process may have died while storing something. If that cannot be
        removed, the session still works. Removes nothing if an event is damaged or of a later version, because it may be about
        any output."""
        if self._knows_all_events:
            with suppress(StoreError):
                self.shelf.remove_unrecorded(self._earlier_replies.union(self.gate.kept.ids))

    def _find_readable(self, earlier: Sequence[Kept], digests: Collection[str]) -> list[Kept]:
        """The host's earlier outputs with these hashes that can still be read. Kept outputs may have been removed since."""
        found: list[Kept] = []
        for kept in earlier:
            if kept.reason == "requested" and kept.sha256 in digests and not kept.missing:
                with suppress(HandleError, StoreError):
                    self.outputs.open(kept.artifact_id).close()
                    found.append(kept)
        return found

    def list_kept(self) -> list[Kept]:
        """The stored outputs. In a shared session, includes those of other workers."""
        others = self.family.list_kept() if self.family is not None and self.family.is_shared else []
        return [*others, *self.gate.kept]

    def list_running(self) -> list[JobInfo]:
        return [job.info for job in [*self.calls.jobs.pending(), *self._list_elsewhere()] if not job.done]

    def describe_jobs(self) -> list[JobStatus]:
        """All jobs and their states; in a shared session, also the jobs of other workers."""
        others = [describe_job(job, self.gate.settings, 0) for job in self._list_elsewhere()]
        return [*self.retrieval.statuses(), *others]

    def _list_elsewhere(self) -> list[Job]:
        return [] if self._elsewhere is None else self._elsewhere.list_jobs(self.calls.jobs.background)

    async def abort(self) -> list[Job]:
        """Cancel every job, including those of other workers in a shared session. Returns those that keep running here."""
        if self._elsewhere is not None:
            cancel = None if self.remote is None else self.remote.cancel
            await self._elsewhere.abort(self.calls.jobs.background, cancel)
        return await self.calls.jobs.abort()

    async def keep(self, data: Any, name: str, call: ToolCall | None = None, *, count_tokens: bool) -> Kept:
        require("name", name, str, "a string")
        call = ToolCall("", name) if call is None else call
        require("call", call, ToolCall, "a ToolCall")
        if data is None:
            raise BadRequest(f"There is nothing to store as {name!r}: it is None.")
        blocks = data.content if isinstance(data, Output) else data if is_blocks(data) else ()
        if any(block_text(block) is None for block in blocks):
            data = await anyio.to_thread.run_sync(to_json, blocks)
        settings = self.gate.settings.for_tool(call.name, call.server)
        new_spool, most = partial(self.gate.new_spool, settings), settings.truncation.max_artifact_size
        collected = CollectedResult(new_spool if count_tokens else lambda: Spool(self.shelf, handles.new(), most, ESTIMATE))
        try:
            await collected.take(data)
            if isinstance(collected.error, TypeError) and not collected.broke_off:
                raise BadRequest(f"{name!r} cannot be stored: {collected.error}") from collected.error
            if collected.error is not None and not collected.broke_off:
                raise collected.error
            kept = await self.gate.keep(call, collected, "requested")
        except BaseException:
            collected.discard()
            raise
        await self.calls.settle()
        return kept

    async def invoke(self, name: str, args: object, call: str) -> Reply:
        if name == PROGRAM and isinstance(args, Mapping):
            return await self.programs.invoke(cast("Mapping[str, Any]", args), call)
        reply = await self.retrieval.invoke(name, args, call)
        await self.calls.settle()
        return reply

    async def extract(self, handle: str, request: ExtractionRequest, progress: Progress | None) -> Extraction:
        # Shared and left open: the engine's index of it serves later questions, and reads from the same map.
        stored = await anyio.to_thread.run_sync(self.outputs.recent, handle)
        return await self.extractor.extract(stored, self.gate.arguments.get(stored.kept.id, "{}"), request, progress)

    async def end(self, *, abort: bool, remove_empty: Callable[[str], None] | None) -> list[Job]:
        """Close everything. Returns the jobs whose threads could not be interrupted."""
        left: list[Job] = []
        with anyio.CancelScope(shield=True):
            if self.remote is not None:
                self.remote.is_leaving = True
            left = await self.calls.jobs.abort() if abort else []
            if self.remote is not None:
                await self.remote.close()
            await anyio.to_thread.run_sync(self._close)
            is_empty = not (self.gate.kept or self.calls.jobs.background or self.recorder.has_recorded)
            is_compared = self.gate.settings.holdout_percent and self.ledger.counters.calls
            if remove_empty and is_empty and not is_compared:  # as in most sessions of a family
                with suppress(StoreError, HandleError):  # if it cannot be removed, it only takes a little space
                    await anyio.to_thread.run_sync(remove_empty, self.shelf.session)
        if left:
            logger.warning(
                "Session %s is closed. These tools could not be interrupted and keep running: %s",
                self.shelf.session,
                ", ".join(f"{job.tool} ({job.artifact_id})" for job in left),
                extra={"go_on": [job.artifact_id for job in left]},
            )
        return left

    def _close(self) -> None:
        self.programs.close()
        self.gate.intents.close()
        self.tables.close()
        self.outputs.close()
        self.recorder.close()
        if self.budget is not None:
            self.ledger.note_settlements(self.budget)
        if isinstance(self.shelf, WaitingShelf):
            self.shelf.settle()  # first, because the journal waits for it
        self.ledger.close()
        self.shelf.close()


@asynccontextmanager
async def hold_shelf(store: Store, settings: Settings, id: str, name: str) -> AsyncGenerator[Shelf]:
    """Open a shelf for a session that is about to begin, and close it again if the session does not begin.

    A session with a name is kept.
    """
    found: list[Shelf] = []
    wanted = True

    def work() -> None:
        retention = "keep" if name else settings.retention
        limits = KeepLimits(settings.keep_days, settings.keep_bytes) if retention == "keep" else None
        shelf = store.open_shelf(id, name=name, retention=retention, limits=limits)
        may_wait = is_on_server(store.url) and not isinstance(shelf, WaitingShelf)
        found.append(WaitingShelf(shelf) if may_wait else shelf)
        if not wanted:  # the caller was cancelled, but this thread could not be interrupted
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
