"""Writes events to a session's journal; log lines and accounting entries are views of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from threading import RLock
from typing import TypeAlias

from overspill.budget import ContextBudget
from overspill.errors import StoreError
from overspill.record import events
from overspill.record.counters import Counters
from overspill.record.events import Entry, EventsDropped, OutputStored, now_ms
from overspill.record.logs import Observers, log_stored, logger, tell

_MAX_DEFERRED_EVENTS = 256  # events of calls and retrievals that are written together
MAX_UNWRITTEN_EVENTS = 4096
"""Events that wait in memory for a journal that cannot be written, besides those that are never dropped."""
ReadLines: TypeAlias = Callable[[], Iterable[bytes]]
_DEFERRABLE = frozenset({events.ToolCalled, events.OutputRetrieved, events.TextShown, events.ConversationOpened})
_NEVER_DROPPED = frozenset({OutputStored, events.JobChanged, events.OutputExtracted})


class Ledger:
    """Counts events and writes them to a session's journal. A failing journal does not stop tools.

    Events about stored outputs and jobs are written immediately, after everything that came before them. Events about calls and
    retrievals may wait for a `flush`; `schedule_flush` is called when the first one starts to wait, and when a write fails.
    Events that cannot be written stay in memory and are tried again. When too many wait, the oldest are dropped and counted,
    but never one about a stored output or a job: without it, the output would be unknown to the next session.
    """

    def __init__(
        self,
        session: str,
        write: Callable[[bytes], None],
        read: ReadLines = tuple[bytes, ...],
        observers: Observers = (),
        *,
        stored_level: int = logging.WARNING,  # the level that the documentation promises
        is_off_loop: bool = False,
    ) -> None:
        self.session = session
        self.failure = ""
        """Why the journal cannot be written at the moment."""
        self.schedule_flush: Callable[[], None] = lambda: None
        self.is_off_loop = is_off_loop
        """Whether events are written elsewhere than where they are recorded, because that may take long. A reply that names an
        output or a job first waits until `settled` has reached the value of `recorded`."""
        self.recorded = self.settled = 0
        self.conversations = 0
        """How many have begun: a session outlives its client if another one takes it over."""
        self._write = write
        self._read = read
        self._observers = observers
        self._stored_level = stored_level
        self._waiting: list[Entry] = []
        self._counters = Counters()
        self._counted = 0
        self._dropped = 0
        self._drop_at = MAX_UNWRITTEN_EVENTS
        self._in_flight = 0  # how many of the first waiting events are in the current write
        self._mutex = RLock()  # a session closes in a worker thread while a reply may still be recorded
        self._writing = RLock()  # one write at a time, so that events stay in order. Taken before `_mutex`

    @property
    def counters(self) -> Counters:
        """The totals, up to date: waiting events are counted now, unless they were counted when written."""
        with self._mutex:
            for event in self._waiting[self._counted :]:
                self._counters.add(event)
            self._counted = len(self._waiting)
            return self._counters

    def record(self, event: Entry) -> None:
        with self._mutex:
            self._waiting.append(event)
            self.conversations += isinstance(event, events.ConversationOpened)
            count = len(self._waiting)
            is_due = type(event) not in _DEFERRABLE or (count >= _MAX_DEFERRED_EVENTS and not self.failure)
            if is_due:
                self.recorded += 1
            elif count == self._in_flight + 1:
                self.schedule_flush()
            elif count >= self._drop_at:
                self._drop_oldest()
        if isinstance(event, OutputStored):
            log_stored(event, self._stored_level)
        if is_due and self.is_off_loop:
            self.schedule_flush()
        elif is_due:
            self.flush()
            if self.failure:
                self.schedule_flush()
        if self._observers:
            tell(self._observers, self.session, event)

    def flush(self) -> None:
        """Write the waiting events. Blocks as long as the store does, but other threads can still record events."""
        with self._writing:
            with self._mutex:
                if not self._waiting or self._in_flight:  # the latter if the write itself records something
                    return
                _ = self.counters
                waiting, dropped, recorded = list(self._waiting), self._dropped, self.recorded
                self._in_flight = len(waiting)
            failure = "it was interrupted."
            try:
                gap = [EventsDropped(now_ms(), dropped)] if dropped else []
                self._write(events.encode_events([*gap, *waiting]))
                failure = ""
            except StoreError as error:
                failure = str(error)
            finally:
                with self._mutex:
                    self._in_flight, self.settled = 0, recorded
                    self._note_written(len(waiting), dropped, failure)

    def _note_written(self, count: int, dropped: int, failure: str) -> None:
        if failure:
            if not self.failure:
                logger.warning("Cannot write to the journal of session %s: %s It will be tried again.", self.session, failure)
            self.failure = failure
            self._drop_oldest()
            return
        if self.failure:
            logger.warning("The journal of session %s can be written again; %d events were lost.", self.session, dropped)
        del self._waiting[:count]
        self._counted, self._dropped, self.failure = self._counted - count, self._dropped - dropped, ""

    def events(self) -> Iterator[Entry]:
        """All events since the session was first opened: those in the journal, and those that could not be written yet."""
        self.flush()
        return self.events_about("")

    def events_about(self, word: str) -> Iterator[Entry]:
        """The events that contain this word, such as an id, and perhaps a few others. Most lines are not decoded."""
        with self._mutex:
            unwritten = {events.encode_events([event]): event for event in self._waiting}

        def read() -> Iterator[bytes]:
            for line in self._read():
                unwritten.pop(line, None)  # a thread has written it in the meantime
                yield line

        yield from events.decode_events(read(), about=word)
        yield from unwritten.values()

    def close(self) -> None:
        self.flush()
        if self._waiting:
            count = len(self._waiting) + self._dropped
            logger.error("%d events are missing from the journal of session %s: %s", count, self.session, self.failure)

    def note_settlements(self, budget: ContextBudget) -> None:
        """Record what the host has settled with the budget since the last call."""
        while budget.settlements:
            estimated, reported = budget.settlements.pop(0)
            self.record(events.TokensReported(now_ms(), estimated, reported))

    def _drop_oldest(self) -> None:
        """Drop the oldest events, in batches, so that a long failure costs each call next to nothing."""
        _ = self.counters
        excess = sum(type(event) not in _NEVER_DROPPED for event in self._waiting) - MAX_UNWRITTEN_EVENTS
        remaining: list[Entry] = []
        for index, event in enumerate(self._waiting):
            if excess > 0 and type(event) not in _NEVER_DROPPED and index >= self._in_flight:
                excess -= 1
                self._dropped += 1
                self._counters.add(EventsDropped(event.t, 1))
            else:
                remaining.append(event)
        self._waiting, self._counted = remaining, len(remaining)
        self._drop_at = max(MAX_UNWRITTEN_EVENTS, len(remaining)) + _MAX_DEFERRED_EVENTS
