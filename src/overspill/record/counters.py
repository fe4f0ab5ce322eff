"""Running totals over the events of a ledger."""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct, field

from overspill.record import events
from overspill.record.events import Entry, ModelCalled, OutputRetrieved
from overspill.store.keep import Opening
from overspill.text import tokens
from overspill.text.lines import join_spans

MAX_TRACKED_OUTPUTS = 4_096
"""How many outputs to track the retrieved parts of."""


class Counters(Struct):
    calls: int = 0
    failed_calls: int = 0
    kept: int = 0
    kept_bytes: int = 0
    kept_tokens: int = 0
    shown_chars: int = 0
    truncated: int = 0
    retrievals: int = 0
    failed_retrievals: int = 0
    retrieved_chars: int = 0
    estimated_tokens: int = 0
    reported_tokens: int = 0
    refs: int = 0
    extractions: int = 0
    model_calls: int = 0
    failed_model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    dropped_events: int = 0
    """Events that the journal lacks, because it could not be written for a while."""
    sizes: dict[str, int] = field(default_factory=OrderedDict[str, int])
    """By stored output, like the next two, for the latest `MAX_TRACKED_OUTPUTS`. Ordered, to find the oldest one quickly."""
    seen: dict[str, list[tuple[int, int]]] = {}
    """The byte ranges that were retrieved, merged."""
    retrieved: dict[str, int] = field(default_factory=OrderedDict[str, int])
    """How often each output was retrieved successfully."""
    untracked_in_full: int = 0
    """How many untracked outputs had been retrieved in full."""

    @property
    def truncation_rate(self) -> float:
        """The share of calls whose output did not pass whole."""
        return self.truncated / self.calls if self.calls else 0.0

    @property
    def tokens_kept_out(self) -> int:
        """An estimate: the tokens of all stored outputs, minus those that were shown instead or retrieved later."""
        return max(0, self.kept_tokens - (self.shown_chars + self.retrieved_chars) // tokens.CHARS_PER_TOKEN)

    @property
    def retrieved_in_full(self) -> int:
        """How many stored outputs the model read in full after all: for them, the limit was too low."""
        return self.untracked_in_full + sum(self.seen.get(id) == [(0, size)] for id, size in self.sizes.items())

    def add(self, event: Entry) -> None:
        match event:
            case events.ToolCalled():
                self.calls += 1
                self.failed_calls += event.status == "failed"
                self.truncated += event.truncated
                if event.truncated or event.id:  # only an id: stored, and passed whole to a program
                    self.shown_chars += event.chars_out
            case events.OutputStored(kept=kept):
                size = kept.size
                self.kept += 1
                self.kept_bytes += size.bytes
                self.kept_tokens += size.tokens
                self.sizes[kept.id] = size.bytes
                if len(self.sizes) > MAX_TRACKED_OUTPUTS:
                    self._stop_tracking(next(iter(self.sizes)))
            case OutputRetrieved():
                self._add_retrieval(event)
            case events.TextShown():
                self.shown_chars += event.chars if event.what == "output" else 0
            case events.TokensReported():
                self.estimated_tokens += event.estimated
                self.reported_tokens += event.reported
            case events.ReferenceUsed():
                self.refs += 1
            case events.OutputExtracted():
                self.extractions += event.status == "ok"
            case ModelCalled():
                self.model_calls += 1
                self.failed_model_calls += event.status == "failed"
                self.input_tokens += event.input_tokens
                self.output_tokens += event.output_tokens
                self.cost += event.cost or 0.0
            case events.EventsDropped():
                self.dropped_events += event.count
            case Opening() | events.JobChanged() | events.CommandEnded() | events.OutputInspected():
                pass
            case events.TurnOpened() | events.AgentStarted() | events.ConversationOpened():
                pass

    def _add_retrieval(self, event: OutputRetrieved) -> None:
        if event.status == "failed":
            self.failed_retrievals += 1
            return
        if not event.id:  # nothing was read, as when a model waits or names an unknown output
            return
        self.retrievals += 1
        self.retrieved_chars += event.chars_out
        self.retrieved[event.id] = self.retrieved.get(event.id, 0) + 1
        if len(self.retrieved) > MAX_TRACKED_OUTPUTS:  # also outputs of other sessions
            self._stop_tracking(next(iter(self.retrieved)))
        if event.end > event.start:
            self.seen[event.id] = join_spans([*self.seen.get(event.id, []), (event.start, event.end)])

    def _stop_tracking(self, id: str) -> None:
        size = self.sizes.pop(id, None)
        if self.retrieved.pop(id, None):
            self.untracked_in_full += self.seen.pop(id, None) == [(0, size)]
