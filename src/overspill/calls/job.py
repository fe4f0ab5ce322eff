"""One tool call that may outlive its answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, TypeAlias

import anyio

from overspill import handles
from overspill.types import Block, JobInfo, JobState

_LOOK_AGAIN = 0.05  # seconds, at least, between looks at a call that waits for a person

NewScope: TypeAlias = Callable[[], anyio.CancelScope]


class Job:
    """`may_take`: seconds its tool may run. `caller`: the job whose tool made this call, where one did."""

    state: JobState = "queued"
    error = ""
    missing = ""
    """What of its output could not be stored, and why."""
    progress = ""
    """How far it is, in the tool's own words."""
    result: Any = None
    blocks: Sequence[Block] = ()
    """What came with the text of its output: images, links."""
    background = False
    done = False
    told = False
    running = False
    """Whether the tool itself is: one that does not let itself be cancelled outlives its job."""
    threads = 0
    """Worker threads of this job that are still running: they cannot be interrupted."""
    needs_place = False
    """Whether it counts among the tools that run at the same time. A call that runs in its caller's task does not."""
    has_place = False
    waits = 0
    """How many calls its tool has made and waits for."""
    cancelled = False
    timed_out = False
    concluded = False
    unwanted = False
    """Its caller is gone, and nobody was told of it."""
    _ended: float | None = None
    _asking = 0
    _asking_since = 0.0
    _asked = 0.0

    def __init__(self, tool: str, may_take: float, new_scope: NewScope = anyio.CancelScope, *, server: str = "") -> None:
        self.tool = tool
        self.server = server
        self.may_take = may_take
        self.caller = current.get()
        self.scope = new_scope()
        """To be entered once, by whatever runs the tool."""
        self._since = time.monotonic()

    @cached_property
    def answered(self) -> anyio.Event:
        """Set when the race is over, whoever won it. A call that waits in its caller has none."""
        return anyio.Event()

    @cached_property
    def id(self) -> str:
        return handles.new()

    @property
    def artifact_id(self) -> str:
        return handles.artifact_id(self.id)

    @property
    def seconds(self) -> float:
        """Since it started; of a queued job, since it was asked for."""
        return (time.monotonic() if self._ended is None else self._ended) - self._since

    @property
    def info(self) -> JobInfo:
        return JobInfo(self.artifact_id, self.tool, self.state)

    @property
    def is_pending(self) -> bool:
        """Whether something of it still runs, be it over or not."""
        return self.running or self.threads > 0

    @property
    def in_thread(self) -> bool:
        """Whether a worker thread waits for it: its own, or one of those who called it."""
        return self.threads > 0 or (self.caller is not None and self.caller.in_thread)

    @contextmanager
    def pause_clocks(self) -> Generator[None]:
        """While a person is asked for input the call is not slow: its clocks stand still."""
        if not self._asking:
            self._asking_since = time.monotonic()
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self._asked += time.monotonic() - self._asking_since

    def rest(self, deadline: float) -> float:
        """Seconds of its own that it still has."""
        if self._asking:
            return max(_LOOK_AGAIN, deadline + self._asked - self._asking_since)
        return deadline + self._asked - time.monotonic()

    @property
    def is_ending(self) -> bool:
        return self.cancelled or self.timed_out or self.done

    @cached_property
    def taking_back(self) -> set[anyio.CancelScope]:
        """In which its tool waits for a place after a call; only the end of the job interrupts that."""
        return set()

    def cancel(self) -> None:
        self.cancelled = True
        self._interrupt()

    def time_out(self) -> None:
        self.timed_out = True
        self._interrupt()

    def _interrupt(self) -> None:
        self.scope.cancel()
        for scope in self.taking_back:
            scope.cancel()

    @classmethod
    def restore(cls, id: str, tool: str, server: str, state: JobState, seconds: float, error: str) -> Job:
        """A finished one that left memory; the model knows of it, or will not be told any more."""
        job = cls(tool, 0.0, server=server)
        job.id, job.state = id, state
        job.error, job.missing = (error, "") if state == "failed" else ("", error)
        job.background = job.done = job.told = True
        job._ended = job._since + seconds
        return job

    def start(self) -> None:
        self.state = "running"
        self._since = time.monotonic()

    def end(self) -> None:
        if not self.error and (self.state == "queued" or self.scope.cancelled_caught):
            self.error = "cancelled"
        self.state = "failed" if self.error else "ready"
        self._ended = time.monotonic()
        self.done = True


current: ContextVar[Job | None] = ContextVar("overspill_job", default=None)


@contextmanager
def asking() -> Generator[None]:
    """For tools that ask a person: `with asking(): …`. Such a call does not go to the background, and does not time out, while
    it waits for the answer. Outside a tool it does nothing."""
    job = current.get()
    if job is None:
        yield
    else:
        with job.pause_clocks():
            yield
