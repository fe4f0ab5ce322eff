"""The content of one session's journal, read once: a journal only grows, so later reads cover only what is new. Also the figures
behind the plots: what entered the context and what was kept out of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from msgspec import Struct

from overspill import handles
from overspill.record import events as recorded
from overspill.record.bill import Bill, BilledCounters, count_tokens
from overspill.record.events import MAX_REPLY_BYTES, Entry, JobChanged, RecordedReply, TextShown, ToolCalled
from overspill.store.protocols import ShelfLabel
from overspill.text.humanize import to_datetime
from overspill.types import Kept

HOUR_MS = 60 * 60 * 1000
MAX_TOOLS = 1_000
"""The most tools that are counted separately in one session. A server may invent a name for each call."""
_OTHERS = "(other tools)"
MAX_NAMES = 4
"""The most clients or servers in the title of a session."""
MAX_HOURS = 72
"""The most hours that are plotted one by one. More are plotted by day."""
MAX_POINTS = 2_000
"""The most points in a plot. If there are more steps, each point covers several steps."""
N = TypeVar("N", int, str)


def read_events(lines: Iterable[bytes]) -> Iterator[Entry]:
    """Yield the events of a journal. An event with a malformed id, which no session can have written, counts as missing."""
    for event in recorded.decode_events(lines):
        yield event if _is_sound(event) else recorded.EventsDropped(event.t, 1)


def _is_sound(event: Entry) -> bool:
    match event:
        case recorded.OutputStored(kept=kept):
            return handles.is_uuid(kept.id) and handles.is_uuid(kept.session)
        case recorded.OutputExtracted():
            return handles.is_uuid(event.id)
        case JobChanged():
            return handles.is_uuid(event.id) and math.isfinite(event.seconds)
        case ToolCalled() | recorded.OutputRetrieved() | TextShown():
            stored = recorded.find_replies(event)
            is_sound = all(handles.is_uuid(each.id) and each.start >= 0 and 0 <= each.size <= MAX_REPLY_BYTES for each in stored)
            return is_sound and (not event.id or handles.is_uuid(event.id))
        case _:
            return True


class SavingsKey(Struct, frozen=True):
    hour: int
    """Hours since 1970, in UTC."""
    server: str
    tool: str


GROUPINGS: dict[str, Callable[[SavingsKey], str]] = {
    "tool": lambda key: key.tool,
    "server": lambda key: key.server or "(none)",
    "day": lambda key: to_datetime(key.hour * HOUR_MS).date().isoformat(),
}


class Savings(Struct):
    """Tokens of the outputs that were kept, and of what was shown instead or retrieved later."""

    calls: int = 0
    kept: int = 0
    kept_tokens: int = 0
    shown_tokens: int = 0

    def add(self, other: Savings) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def saved_tokens(self) -> int:
        """How many tokens were kept out of the context. Negative if outputs were shown more than once."""
        return self.kept_tokens - self.shown_tokens


class SessionRecord:
    """One session. Feed it the lines of its journal with `read`, as often as you like."""

    def __init__(self, label: ShelfLabel) -> None:
        self.label = label
        self.counters = BilledCounters()
        self.began_ms = 0
        self.last_ms = 0
        self.tools: Counter[str] = Counter()
        self.kept: dict[str, Kept] = {}
        self.replies: dict[str, RecordedReply] = {}
        """What the model was first shown of each output, if it is on record."""
        self.jobs: dict[str, JobChanged] = {}
        self.clients: dict[str, None] = {}
        self.servers: dict[str, None] = {}
        self.savings: dict[SavingsKey, Savings] = {}
        self.events = 0
        """Lines of the journal that were read."""

    def read(self, lines: Iterable[bytes]) -> None:
        """Read the journal, given all its lines from the beginning. Lines that were read before are skipped."""

        def count(fresh: Iterable[bytes]) -> Iterator[bytes]:
            for line in fresh:
                self.events += 1
                yield line

        for event in read_events(count(islice(lines, self.events, None))):
            self._add(event)

    @property
    def session(self) -> str:
        return self.label.session

    @property
    def title(self) -> str:
        """The session's name. If it has none, or only its id, the names of its clients and servers, and when it began."""
        if self.label.name and self.label.session not in self.label.name:
            return self.label.name
        known = (", ".join(self.clients), ", ".join(self.servers) or ", ".join(islice(self.tools, 3)))
        return " · ".join([*filter(None, known), f"{to_datetime(self.began_ms):%Y-%m-%d %H:%M}"])

    @property
    def running(self) -> list[JobChanged]:
        """Jobs that are queued or running, if the session is live: the jobs of a session that died will never end."""
        unfinished = [job for job in self.jobs.values() if job.state in ("queued", "running")]
        return unfinished if self.label.live else []

    @property
    def errors(self) -> int:
        return self.counters.failed_calls + self.counters.failed_retrievals + self.counters.failed_model_calls

    def matches(self, words: str) -> bool:
        """Whether its title, its name, its id or the name of a tool contains every word."""
        text = "\n".join((self.title, self.label.name, self.label.session, *self.tools)).lower()
        return all(word in text for word in words.lower().split())

    def _add(self, event: Entry) -> None:
        self.counters.add(event)
        self.began_ms = self.began_ms or event.t
        self.last_ms = max(self.last_ms, event.t)
        match event:
            case ToolCalled():
                is_told_apart = event.tool in self.tools or len(self.tools) < MAX_TOOLS
                self.tools[event.tool if is_told_apart else _OTHERS] += 1
                self._note_reply(event)
                _note_name(self.servers, event.server)
                found = self._find(event.t, event.server, event.tool)
                found.calls += 1
                if event.truncated or event.id:
                    found.shown_tokens += count_tokens(event)
            case recorded.OutputStored(kept=kept):
                self.kept[kept.id] = kept
                if kept.reason != "requested":  # an output that the host stored itself would not have entered the context
                    found = self._find(event.t, kept.server, kept.tool)
                    found.kept += 1
                    found.kept_tokens += kept.size.tokens
            case recorded.OutputRetrieved() if (made := self.kept.get(event.id)) is not None and made.reason != "requested":
                self._find(event.t, made.server, made.tool).shown_tokens += count_tokens(event)
            case JobChanged():
                self.jobs[event.id] = event
            case recorded.ConversationOpened():
                _note_name(self.clients, event.client)
                for server in event.servers[:MAX_NAMES]:
                    _note_name(self.servers, server)
            case TextShown():
                self._note_reply(event)
                if event.what == "output" and (made := self.kept.get(event.id)) is not None:
                    self._find(event.t, made.server, made.tool).shown_tokens += count_tokens(event)
            case _:
                pass

    def _note_reply(self, event: ToolCalled | TextShown) -> None:
        if event.id and event.reply is not None:
            self.replies.setdefault(event.id, event.reply)

    def _find(self, t: int, server: str, tool: str) -> Savings:
        key = SavingsKey(t // HOUR_MS, server, tool)
        if key not in self.savings and len(self.savings) >= MAX_TOOLS:
            key = SavingsKey(t // HOUR_MS, "", _OTHERS)
        return self.savings.setdefault(key, Savings())


def _note_name(known: dict[str, None], name: str) -> None:
    if name and len(known) < MAX_NAMES:
        known[name] = None


class ContextPoint(Struct, frozen=True):
    """The state after a step: the tokens that have entered the context, and the tokens of kept outputs that were not shown."""

    step: int
    label: str
    entered: int
    kept_out: int


def plot_context(events: Iterable[Entry]) -> list[ContextPoint]:
    """Compute a point for each turn, or for each call if no turns were recorded."""
    bill = Bill()
    points: list[ContextPoint] = []
    turns: list[ContextPoint] = []

    def make_point(step: int, label: str) -> ContextPoint:
        return ContextPoint(step, label, bill.entered, max(0, bill.kept_out))

    for event in events:
        bill.add(event)
        match event:
            case ToolCalled() | recorded.OutputRetrieved():
                points.append(make_point(len(points) + 1, event.tool))
            case TextShown(what="output" | "news"):
                points.append(make_point(len(points) + 1, event.what))
            case recorded.TurnOpened():
                turns.append(make_point(len(turns), f"before turn {event.turn}"))
            case _:
                pass
    if turns:
        points = [*turns, make_point(len(turns), "now")]
    every = -(-len(points) // MAX_POINTS)
    return points if every <= 1 else [*points[:-1:every], points[-1]]


def sum_savings(records: Iterable[SessionRecord], grouping: str) -> list[tuple[str, Savings]]:
    """Sum savings by tool or server, highest first, or by day, in order."""
    rows = _sum_by(GROUPINGS[grouping], records).items()
    return sorted(rows) if grouping == "day" else sorted(rows, key=lambda row: -row[1].saved_tokens)


def sum_times(records: Iterable[SessionRecord]) -> list[tuple[int, Savings]]:
    """Sum savings by day, or by hour if there are few days. Keys are the seconds at which each begins."""
    hours = _sum_by(lambda key: key.hour, records)
    length = 1 if not hours or max(hours) - min(hours) < MAX_HOURS else 24
    sums: dict[int, Savings] = {}
    for hour, found in sorted(hours.items()):
        sums.setdefault(hour // length * length * (HOUR_MS // 1000), Savings()).add(found)
    return list(sums.items())


def _sum_by(name: Callable[[SavingsKey], N], records: Iterable[SessionRecord]) -> dict[N, Savings]:
    sums: dict[N, Savings] = {}
    for record in records:
        for key, found in record.savings.items():
            sums.setdefault(name(key), Savings()).add(found)
    return sums
