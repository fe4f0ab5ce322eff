"""What can happen, as frozen nouns. A journal holds them, one a line; everything reported is a view of them.

No event holds content, arguments or queries: figures, names and handles only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from overspill.store.protocols import Retention
from overspill.types import JobState, Kept, Kind, Reason

Status: TypeAlias = Literal["ok", "failed"]
Fallback: TypeAlias = Literal["", "builtin", "truncate"]


class Event(Struct, frozen=True, tag_field="event", omit_defaults=True):
    t: int
    """Unix milliseconds."""


class SessionOpened(Event, frozen=True, tag="session"):
    """The first line of every journal; a session that is opened again goes on in the same one."""

    session: str
    name: str = ""
    retention: Retention = "session"


class ToolCalled(Event, frozen=True, tag="call"):
    tool: str
    server: str = ""
    kind: Kind = "function"
    status: Status = "ok"
    latency: int = 0
    chars_in: int = 0
    chars_out: int = 0
    id: str = ""
    """The stored output, where the answer stands for one."""
    reason: Reason | None = None
    truncated: bool = False
    call: str = ""
    """The id by which the model called; only what a model asked for has one."""


class OutputStored(Event, frozen=True, tag="kept"):
    kept: Kept
    kind: Kind = "function"


class OutputRetrieved(Event, frozen=True, tag="retrieval"):
    tool: str
    mode: str
    status: Status = "ok"
    id: str = ""
    start: int = 0
    end: int = 0
    """The stored bytes that were shown, where the answer shows a range of them."""
    chars_out: int = 0
    latency: int = 0
    call: str = ""
    chars_in: int = 0


class ReferenceUsed(Event, frozen=True, tag="ref"):
    tool: str
    id: str
    bytes: int


class TokensReported(Event, frozen=True, tag="tokens"):
    """Our estimate beside the provider's own count."""

    estimated: int
    reported: int


class JobChanged(Event, frozen=True, tag="job"):
    """A job in the background changed its state; the first one says when it was asked for."""

    id: str
    tool: str
    state: JobState
    seconds: float = 0.0
    error: str = ""
    server: str = ""
    kept: bool = False
    """Whether its output, or what there is of it, can be retrieved."""


class EventsDropped(Event, frozen=True, tag="dropped"):
    """The journal could not be written for a while, and so many events before this line are missing."""

    count: int


class ModelCalled(Event, frozen=True, tag="model"):
    """One request to a model, a step of the operation `op` or, where that is empty, of an agent's turn: sizes, and the
    beginning of the answer."""

    op: str
    model: str
    status: Status = "ok"
    latency: int = 0
    messages: int = 0
    request_bytes: int = 0
    estimated_tokens: int = 0
    """Of the request, as we count; `input_tokens` is what the provider reported, 0 where it did not."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    preview: str = ""
    """At most 4,096 bytes."""
    error: str = ""


class OutputInspected(Event, frozen=True, tag="look"):
    """A call of the sub-agent that reads and greps for the operation `op`."""

    op: str
    tool: str
    status: Status = "ok"
    latency: int = 0
    chars_out: int = 0


class TurnOpened(Event, frozen=True, tag="turn"):
    """What follows belongs to this turn of an agent."""

    turn: int
    of: int
    final: str = ""
    """Why only the final report is possible in it."""


class AgentStarted(Event, frozen=True, tag="agent"):
    """A tool that is an agent opened a session of its own."""

    tool: str
    session: str


class Quote(Struct, frozen=True, array_like=True):
    """Stored bytes that an answer shows as they are; the hash lets anybody check that later."""

    start: int
    end: int
    sha256: str


class OutputExtracted(Event, frozen=True, tag="extraction"):
    """An operation of its own, also one that failed: what was asked of a stored output is not recorded, what was found only by
    its place."""

    op: str
    id: str
    tool: str
    mode: str
    strategy: str = ""
    """The one that answered; none where it failed."""
    status: Status = "ok"
    model: str = ""
    found: bool = True
    confidence: float = 0.0
    chunks_searched: int = 0
    chunks_total: int = 0
    fallback: Fallback = ""
    """Who answered in the place of a strategy that could not be carried out."""
    latency: int = 0
    quotes: tuple[Quote, ...] = ()
    warnings: int = 0


Entry: TypeAlias = (
    SessionOpened
    | ToolCalled
    | OutputStored
    | OutputRetrieved
    | ReferenceUsed
    | TokensReported
    | JobChanged
    | EventsDropped
    | ModelCalled
    | OutputInspected
    | TurnOpened
    | AgentStarted
    | OutputExtracted
)

_encoder = msgspec.json.Encoder()
_decode = msgspec.json.Decoder(Entry).decode


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def encode_events(events: Iterable[Entry]) -> bytes:
    """As a journal holds them. A lone surrogate, as a model may write one into the name of a tool, becomes a question mark."""
    try:
        return _encoder.encode_lines(events)
    except UnicodeEncodeError:
        plain = (json.dumps(msgspec.to_builtins(event), ensure_ascii=False) + "\n" for event in events)
        return "".join(plain).encode("utf-8", "replace")


def decode_events(lines: Iterable[bytes]) -> Iterator[Entry]:
    """The events of a journal. Lines that this version cannot understand are passed over."""
    for line in lines:
        try:
            yield _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
