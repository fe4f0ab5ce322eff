"""What a session's model costs, with Overspill and without: an estimate from the journal.

Each call that begins after the last one ended comes from another request to the model, which reads the whole conversation again.
So a token is paid for when it is written to the provider's cache, and again, at a lower price, in each later request. Ignores
pauses that outlast the cache.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct, field

from overspill.record import events
from overspill.record.counters import Counters
from overspill.record.events import Entry, OutputRetrieved, TextShown, ToolCalled
from overspill.settings import PriceSettings
from overspill.text.tokens import CHARS_PER_TOKEN

MAX_REPEATED_OUTPUTS = 4_096
_CALL_TOKENS = 20  # what a model writes around the arguments of a call


def count_tokens(event: ToolCalled | OutputRetrieved | TextShown) -> int:
    """The tokens that the model was shown: counted, or estimated without a count."""
    return event.tokens or (event.chars if isinstance(event, TextShown) else event.chars_out) // CHARS_PER_TOKEN


class Carried(Struct):
    """Tokens that stay in the conversation once they are in it."""

    tokens: int = 0
    before: int = 0
    """For each token the number of requests before it was added, summed over all tokens."""

    def add(self, tokens: int, requests: int) -> None:
        self.tokens += tokens
        self.before += tokens * requests

    def cost(self, prices: PriceSettings, requests: int) -> float:
        """The cost in dollars, with prices for a million tokens."""
        return self.tokens * prices.cache_write + (self.tokens * requests - self.before) * prices.cache_read


class Bill(Struct):
    """The bill of one conversation. Give it every event, in order."""

    requests: int = 0
    passed: Carried = field(default_factory=Carried)
    kept: Carried = field(default_factory=Carried)
    """The stored outputs, as if each had entered the conversation."""
    shown: Carried = field(default_factory=Carried)
    """What the model was shown in their place."""
    read_back: Carried = field(default_factory=Carried)
    offered: Carried = field(default_factory=Carried)
    """The definitions of our tools, and news of jobs."""
    steps: int = 0
    """Requests that only a retrieval made necessary. The next two count the tokens that they read and wrote."""
    step_read: int = 0
    step_written: int = 0
    models: float = 0.0
    """Dollars for models that extract."""
    is_untouched: bool = False
    last_ms: int = 0
    returned: dict[str, tuple[int, int | None]] = field(default_factory=OrderedDict[str, tuple[int, int | None]])
    """The tokens of the latest outputs, and the requests before each was stored; None if a call has returned it since. An output
    that is returned again would have entered again."""

    @property
    def entered(self) -> int:
        return self.passed.tokens + self.shown.tokens + self.read_back.tokens + self.offered.tokens

    @property
    def kept_out(self) -> int:
        return self.kept.tokens - self.shown.tokens - self.read_back.tokens

    def add(self, event: Entry) -> None:
        match event:
            case ToolCalled():
                self.requests += self._is_another_request(event)
                if event.id in self.returned:
                    tokens, at = self.returned[event.id]
                    self.kept.add(tokens if at is None else 0, self.requests)
                    self.kept.before += 0 if at is None else tokens * (self.requests - at)  # it was stored before
                    self.returned[event.id] = tokens, None
                (self.shown if event.truncated or event.id else self.passed).add(count_tokens(event), self.requests)
            case OutputRetrieved():
                if self._is_another_request(event):
                    self.steps += 1
                    self.step_read += self.entered
                    self.step_written += event.chars_in // CHARS_PER_TOKEN + _CALL_TOKENS
                self.read_back.add(count_tokens(event), self.requests)
            case TextShown(what="output"):
                self.shown.add(count_tokens(event), self.requests)
            case TextShown(what="news"):  # a notice leaves the context again
                self.offered.add(count_tokens(event), self.requests)
            case events.OutputStored(kept=kept) if kept.reason != "requested":  # outputs the host stored would not have entered
                self.kept.add(kept.size.tokens, self.requests)
                self.returned[kept.id] = kept.size.tokens, self.requests
                if len(self.returned) > MAX_REPEATED_OUTPUTS:
                    del self.returned[next(iter(self.returned))]
            case events.ConversationOpened():
                self.is_untouched |= event.is_untouched
                if not self.offered.tokens:  # the conversation of a session that is opened again has them already
                    self.offered.add(event.offered_chars // CHARS_PER_TOKEN, self.requests)
            case events.ModelCalled() if event.op:
                self.models += event.cost or 0.0
            case _:
                pass

    def _is_another_request(self, event: ToolCalled | OutputRetrieved) -> bool:
        """Whether a call comes from another request than the last one: calls of one request run at the same time."""
        began, last = event.t - event.latency, self.last_ms
        self.last_ms = max(last, event.t)
        return began >= last

    def costs(self, prices: PriceSettings) -> dict[str, float]:
        """The costs in dollars. `saved` is negative if Overspill cost more than the outputs that it kept out would have."""
        names = ("passed", "kept", "shown", "read_back", "offered")
        found = {name: getattr(self, name).cost(prices, self.requests) / 1_000_000 for name in names}
        steps = (self.step_read + self.steps * prices.prompt_tokens) * prices.cache_read + self.step_written * prices.output
        found["steps"] = steps / 1_000_000 + self.models
        found["spent"] = sum(found.values()) - found["kept"]
        return found | {"saved": found["passed"] + found["kept"] - found["spent"]}


class BilledCounters(Counters):
    """Counters with a bill, for readers of a journal. In a live session, a bill would take time and memory in every call."""

    bill: Bill = field(default_factory=Bill)

    def add(self, event: Entry) -> None:
        super().add(event)
        self.bill.add(event)

    @property
    def tokens_kept_out(self) -> int:
        return max(0, self.bill.kept_out)
