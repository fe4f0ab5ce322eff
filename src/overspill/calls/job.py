"""One tool call that may outlive its answer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, TypeAlias

import anyio

from overspill import handles
from overspill.types import Block, JobInfo, JobState, Kept, OutputForm

_MIN_RECHECK_SECONDS = 0.05  # between two checks while a call waits for a person

NewScope: TypeAlias = Callable[[], anyio.CancelScope]


class Job:
    """`may_take`: how many seconds the tool may run; None: no limit. `caller`: the job whose tool made this call, if any."""

    state: JobState = "queued"
    error = ""
    error_type = ""
    kept: Kept | None = None
    """Its output, once it has finished in the background."""
    missing = ""
    """Which part of its output could not be stored, and why."""
    progress = ""
    """How far the tool is, in the tool's words."""
    hide: Callable[[str], str] | None = None
    """Hides secrets in the progress; None if nothing is to be hidden."""
    result: Any = None
    form: OutputForm = "text"
    blocks: Sequence[Block] = ()
    """The parts of its output that are not text: images, links."""
    background = False
    done = False
    is_announced = False
    """Whether the model knows that it has finished."""
    running = False
    """Whether the tool itself is running: a tool that ignores cancellation outlives its job."""
    threads = 0
    """How many of its worker threads are still running. Threads cannot be interrupted."""
    needs_place = False
    """Whether it counts among the tools that run at the same time. A call that runs in its caller's task does not."""
    has_place = False
    waits = 0
    """How many calls its tool has made and waits for."""
    cancelled = False
    timed_out = False
    overdue = ""
    """If its time is up, the reason."""
    concluded = False
    is_elsewhere = False
    """Whether a worker of a task engine runs its tool. That worker records how it ends."""
    is_repeatable = False
    """Whether another worker runs it again if this one dies."""
    is_handed_over = False
    """Whether it keeps running after this session has ended."""
    unwanted = False
    """Whether its caller was cancelled, and the model does not know of the job."""
    called_off = False
    """Whether a client cancelled it."""
    task = ""
    """The id under which its server runs it as a task. A later session can follow it there."""
    record: Callable[[Job], None] | None = None
    """Records its state, once it runs in the background."""
    _ended: float | None = None
    _asking = 0
    _asking_since = 0.0
    _asked = 0.0

    answered: anyio.Event
    """Set when its call may be answered: the tool has ended or is slow. A call that runs in its caller's task has none."""
    scope: anyio.CancelScope
    """Cancels the tool. Entered once, by the code that runs it. A job restored from the journal has none."""

    def __init__(
        self, tool: str, may_take: float | None, new_scope: NewScope | None = anyio.CancelScope, *, server: str = ""
    ) -> None:
        self.tool = tool
        self.server = server
        self.may_take = math.inf if may_take is None else may_take
        self.caller = current.get()
        self.requester = requester.get()
        if new_scope is not None:
            self.scope = new_scope()
        self._since = time.monotonic()

    @cached_property
    def id(self) -> str:
        return handles.new()

    @property
    def artifact_id(self) -> str:
        return handles.artifact_id(self.id)

    @property
    def created_ms(self) -> int:
        """The time of its id, which it got when it moved to the background."""
        return handles.created_ms(self.id)

    @property
    def seconds(self) -> float:
        """Seconds since it started or, for a queued job, since it was requested."""
        return (time.monotonic() if self._ended is None else self._ended) - self._since

    @property
    def info(self) -> JobInfo:
        return JobInfo(self.artifact_id, self.tool, self.state)

    @property
    def is_pending(self) -> bool:
        """Whether its tool or a thread of it still runs, even if the job has ended."""
        return self.running or self.threads > 0

    @property
    def in_thread(self) -> bool:
        """Whether a worker thread waits for it: its own, or a caller's."""
        return self.threads > 0 or (self.caller is not None and self.caller.in_thread)

    @contextmanager
    def pause_clocks(self) -> Generator[None]:
        """Stop the job's clocks while a person gives input."""
        if not self._asking:
            self._asking_since = time.monotonic()
            self._change_state("running", "waiting")
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self._asked += time.monotonic() - self._asking_since
                self._change_state("waiting", "running")

    def rest(self, deadline: float) -> float:
        """Seconds until its deadline. Time spent waiting for a person does not count."""
        if self._asking:
            return max(_MIN_RECHECK_SECONDS, deadline + self._asked - self._asking_since)
        return deadline + self._asked - time.monotonic()

    @property
    def is_ending(self) -> bool:
        return self.cancelled or self.timed_out or self.done

    @cached_property
    def taking_back(self) -> set[anyio.CancelScope]:
        """The scopes in which its tool waits to be counted as running again after a call. Only the job's end interrupts them."""
        return set()

    @property
    def is_unwanted(self) -> bool:
        """Whether its result can be dropped. The end of the session alone does not allow it."""
        return self.unwanted or self.called_off or self.timed_out

    def note_task(self, id: str) -> None:
        self.task = id
        if self.record is not None:
            self.record(self)

    @cached_property
    def changed(self) -> anyio.Event:
        """Set when its state or progress changes, and then replaced."""
        return anyio.Event()

    def note_progress(self, text: str) -> None:
        self.progress = self.hide(text) if self.hide else text
        self.announce_change()

    def announce_change(self) -> None:
        if (changed := self.__dict__.pop("changed", None)) is not None:
            changed.set()

    def _change_state(self, before: JobState, after: JobState) -> None:
        if self.state == before:
            self.state = after
        self.announce_change()

    def call_off(self) -> None:
        """Cancel it because its caller asked for that."""
        if not self.done:
            self.called_off = True
            self.cancel()

    def cancel(self) -> None:
        self.cancelled = True
        self._interrupt()

    def time_out(self, why: str) -> None:
        self.timed_out, self.overdue = True, why
        self._interrupt()

    def _interrupt(self) -> None:
        self.scope.cancel()
        for scope in self.taking_back:
            scope.cancel()

    @classmethod
    def restore(cls, id: str, tool: str, server: str, state: JobState, seconds: float, error: str) -> Job:
        """Restore a finished job that had left memory."""
        job = cls(tool, 0.0, None, server=server)
        job.id, job.state = id, state
        job.error, job.missing = ("", error) if state == "ready" else (error, "")
        job.background = job.done = job.is_announced = True
        job._ended = job._since + seconds
        return job

    @classmethod
    def watch(cls, id: str, tool: str, server: str, state: JobState, since_ms: int) -> Job:
        """A job that another worker runs."""
        job = cls(tool, None, None, server=server)
        job.id, job.state, job.background = id, state, True
        job._since -= max(0.0, time.time() - since_ms / 1000)
        return job

    def start(self) -> float:
        """Mark the job as running. Returns the time by the monotonic clock."""
        self.state, self.running = "running", True
        self._since = time.monotonic()
        return self._since

    def end(self) -> None:
        if not self.error and (self.state == "queued" or self.scope.cancelled_caught):
            self.error = self.overdue or "cancelled"
        self.state = "ready" if not self.error else "cancelled" if self.called_off else "failed"
        self._ended = time.monotonic()
        self.done = True
        self.announce_change()


class Requester:
    """One of several clients that share a session. Set `requester` to it while you answer its requests.

    A client hears about its own jobs, about jobs it asked for by id, and about the jobs of absent clients of the same `kind`. It
    can read every output of the session.
    """

    def __init__(self, kind: bytes = b"", *, comes_back: bool = True) -> None:
        self.kind = kind
        self.comes_back = comes_back
        """Whether it will ask for an output that comes later. While it may not, its calls are answered only when they end."""
        self.is_away = False
        """Whether it is disconnected, cleanly or not."""
        self._jobs: set[Job] = set()
        self._asked_for: set[str] = set()
        self._fewer = anyio.Event()

    @property
    def jobs(self) -> frozenset[Job]:
        """Its jobs that run in the background."""
        return frozenset(self._jobs)

    def add(self, job: Job) -> None:
        self._jobs.add(job)

    def remove(self, job: Job) -> None:
        self._jobs.discard(job)
        self._fewer.set()
        self._fewer = anyio.Event()

    async def wait_for_jobs(self) -> None:
        while self._jobs:
            await self._fewer.wait()

    def note_asked_for(self, job: Job) -> None:
        self._asked_for.add(job.id)

    def inherits(self, job: Job) -> bool:
        owner = job.requester
        return owner is not None and owner is not self and owner.is_away and owner.kind == self.kind

    def is_told_about(self, job: Job) -> bool:
        return job.requester in (None, self) or job.id in self._asked_for or self.inherits(job)


current: ContextVar[Job | None] = ContextVar("overspill_job", default=None)
requester: ContextVar[Requester | None] = ContextVar("overspill_requester", default=None)
"""The client that makes the current request, if several share the session."""


@contextmanager
def asking() -> Generator[None]:
    """Use this in a tool while it asks a person: `with asking(): …`. Inside, the call does not move to the background and does
    not time out. Outside a tool it does nothing."""
    job = current.get()
    if job is None:
        yield
    else:
        with job.pause_clocks():
            yield
