"""Everything that can happen in a session. A journal has one event per line, and every report is a view of them.

Events hold figures, names and handles, but no content, arguments or queries, except the query that made a stored output.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

from overspill.store.keep import Opening
from overspill.text.lenient_json import UNREADABLE
from overspill.types import JobState, Kept, Kind, OutputForm, Reason, Support

Status: TypeAlias = Literal["ok", "failed"]
Fallback: TypeAlias = Literal["", "builtin", "truncate"]
Shown: TypeAlias = Literal["notice", "news", "output"]
"""What a model is shown unprompted: the state of its jobs, jobs that ended, or, after a turn, the output of one."""
MAX_REPLY_BYTES = 64 << 20
"""The most bytes of all replies that are stored together, and therefore of a single reply."""


class Event(Struct, frozen=True, tag_field="event", omit_defaults=True, gc=False):
    t: int
    """Unix milliseconds."""


class RecordedReply(Struct, frozen=True, omit_defaults=True):
    """Where the text that a model was shown is stored: a range of the entry `id`, which is kept with the session's outputs."""

    id: str
    start: int
    size: int
    """The size of the text in bytes of UTF-8."""
    others: int = 0
    """Blocks that are not text, such as images, which are not recorded."""


class ToolCalled(Event, frozen=True, tag="call"):
    tool: str
    server: str = ""
    kind: Kind = "function"
    status: Status = "ok"
    latency: int = 0
    chars_in: int = 0
    chars_out: int = 0
    id: str = ""
    """The stored output that the reply refers to, if any."""
    reason: Reason | None = None
    truncated: bool = False
    call: str = ""
    """The id that the model gave the call; calls that no model made have none."""
    reply: RecordedReply | None = None
    error_type: str = ""
    """Here and in other events: the type of the exception, if one was raised."""
    tokens: int = 0


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
    """The range of stored bytes that the answer shows, if it shows one."""
    chars_out: int = 0
    latency: int = 0
    call: str = ""
    chars_in: int = 0
    reply: RecordedReply | None = None
    error_type: str = ""
    tokens: int = 0
    question: RecordedReply | None = None


class TextShown(Event, frozen=True, tag="shown"):
    what: Shown
    chars: int = 0
    id: str = ""
    """The job whose output it is."""
    reply: RecordedReply | None = None
    tokens: int = 0


class ConversationOpened(Event, frozen=True, tag="conversation"):
    """Recorded each time a session is opened, or a client of the proxy connects."""

    offered_chars: int = 0
    is_untouched: bool = False
    client: str = ""
    servers: tuple[str, ...] = ()


class ReferenceUsed(Event, frozen=True, tag="ref"):
    tool: str
    id: str
    bytes: int


class TokensReported(Event, frozen=True, tag="tokens"):
    """Our estimate, and the provider's count."""

    estimated: int
    reported: int


class JobChanged(Event, frozen=True, tag="job"):
    """A background job changed its state. The first event of a job says when it was requested."""

    id: str
    tool: str
    state: JobState
    seconds: float = 0.0
    error: str = ""
    server: str = ""
    kept: bool = False
    """Whether its output, or part of it, can be retrieved."""
    form: OutputForm = "text"
    is_elsewhere: bool = False
    """Whether a worker of a task engine runs it. Its own record is in the part of the session that has the job's id."""
    is_repeatable: bool = False
    """Whether another worker runs it again if the one that runs it dies."""
    error_type: str = ""
    task: str = ""
    """The id under which its server runs it as a task."""


class CommandEnded(Event, frozen=True, tag="exit"):
    """A command that `overspill keep` left in the background has ended. A negative code is the signal that ended it."""

    id: str
    code: int


class EventsDropped(Event, frozen=True, tag="dropped"):
    """The journal could not be written for a while, and this many events before this line are missing."""

    count: int


class ModelCalled(Event, frozen=True, tag="model"):
    """A request to a model, as a step of the operation `op`, or of an agent's turn if that is empty."""

    op: str
    model: str
    status: Status = "ok"
    latency: int = 0
    messages: int = 0
    request_bytes: int = 0
    estimated_tokens: int = 0
    """Our count of the request; `input_tokens` is the provider's, or 0 if it reported none."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    preview: str = ""
    """At most 4,096 bytes."""
    error: str = ""
    error_type: str = ""


class OutputInspected(Event, frozen=True, tag="look"):
    """The sub-agent of the operation `op` read or searched the output."""

    op: str
    tool: str
    status: Status = "ok"
    latency: int = 0
    chars_out: int = 0


class TurnOpened(Event, frozen=True, tag="turn"):
    """The following events belong to this turn of an agent."""

    turn: int
    of: int
    final: str = ""
    """Why this turn allows only the final report."""


class AgentStarted(Event, frozen=True, tag="agent"):
    """A tool that is an agent opened its session."""

    tool: str
    session: str


class Quote(Struct, frozen=True, array_like=True):
    """Stored bytes that an answer quotes, with their hash to check them later."""

    start: int
    end: int
    sha256: str


class OutputExtracted(Event, frozen=True, tag="extraction"):
    """An extraction, successful or not. The question is not recorded, and only the positions of the findings are."""

    op: str
    id: str
    tool: str
    mode: str
    strategy: str = ""
    """The strategy that answered; empty if the extraction failed."""
    status: Status = "ok"
    model: str = ""
    found: bool = True
    confidence: float = 0.0
    chunks_searched: int = 0
    chunks_total: int = 0
    fallback: Fallback = ""
    """The fallback that answered instead of a strategy that could not be used."""
    latency: int = 0
    quotes: tuple[Quote, ...] = ()
    support: Support = ""
    """How the quotes support what a model answered."""
    decoded: tuple[str, ...] = ()
    """How the text was decoded, from the outside in: the quotes are passages of that text, not of the stored bytes."""
    warnings: int = 0
    error_type: str = ""


Entry: TypeAlias = (
    Opening
    | ToolCalled
    | OutputStored
    | OutputRetrieved
    | TextShown
    | ConversationOpened
    | ReferenceUsed
    | TokensReported
    | JobChanged
    | CommandEnded
    | EventsDropped
    | ModelCalled
    | OutputInspected
    | TurnOpened
    | AgentStarted
    | OutputExtracted
)

_encoder = msgspec.json.Encoder()
_decode = msgspec.json.Decoder(Entry).decode


def find_replies(event: Entry) -> list[RecordedReply]:
    return [found for name in ("reply", "question") if (found := getattr(event, name, None)) is not None]


def name_type(error: BaseException | None) -> str:
    """The `error_type` of an event. A task group wraps the exception of a single task."""
    while isinstance(error, BaseExceptionGroup):
        members = cast("BaseExceptionGroup[BaseException]", error).exceptions
        if len(members) != 1:
            return "ExceptionGroup"
        error = members[0]
    return "" if error is None else type(error).__name__


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def encode_events(events: Iterable[Entry]) -> bytes:
    """The lines that a journal has for these events. A lone surrogate, such as in the name of a tool, becomes a question mark."""
    try:
        return _encoder.encode_lines(events)
    except UnicodeEncodeError:
        plain = (json.dumps(msgspec.to_builtins(event), ensure_ascii=False) + "\n" for event in events)
        return "".join(plain).encode("utf-8", "replace")


def decode_events(lines: Iterable[bytes], skip: Callable[[bytes], object] = len, *, about: str = "") -> Iterator[Entry]:
    """From the lines of a journal, or only those with the word `about`, such as an id. `skip` gets lines it does not know."""
    written = about.encode()
    for line in lines:
        if not about or written in line:
            try:
                yield _decode(line)
            except UNREADABLE:
                skip(line)
