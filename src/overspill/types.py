"""The frozen values that every part of Overspill shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast, get_args

from msgspec import Struct
from msgspec.structs import force_setattr

from overspill import handles
from overspill.errors import BadRequest, require
from overspill.text import tokens
from overspill.text.arguments import read_arguments

Reason: TypeAlias = Literal[
    "size_cap",  # more bytes than toolResponseMaxBytes
    "token_budget",  # more tokens than the context window has room for
    "reserve_failed",  # would have fitted, but other results of the turn took the room
    "token_threshold",  # more tokens than asyncTokenThreshold
    "char_limit",  # more characters than truncation.inline_limit
    "binary",  # not text: a model could not read it
    "background",  # finished after its call had been answered
    "requested",  # stored by the host with Session.keep
]

Media: TypeAlias = Literal["text", "binary"]

Block: TypeAlias = Any
"""A content block in the shape of MCP: a mapping with a "type", or an object with the same attributes.
A block that passes is the same object that the tool returned, so no field can get lost."""


class Size(Struct, frozen=True, gc=False):
    """How large an output is, in every unit that a setting can limit."""

    bytes: int
    chars: int
    lines: int
    tokens: int
    estimated: bool = False
    """Whether `tokens` was sampled, or counted without the model's vocabulary."""

    @property
    def average_line_bytes(self) -> int:
        return -(-self.bytes // self.lines) if self.lines else 0


Kind: TypeAlias = Literal["function", "mcp", "agent", "rest"]
_KINDS: tuple[str, ...] = get_args(Kind)


class ToolCall(Struct, frozen=True):
    """A call that a model asked for. `server` names the MCP server or program that the tool belongs to.

    Arguments may also be a string: the JSON that the model wrote, which some providers pass on unparsed.
    """

    id: str
    name: str
    args: Mapping[str, Any] = {}
    server: str = ""
    kind: Kind = "function"
    intent: str = ""
    """In words, what the caller is looking for in the result. It matters only if the result is kept."""

    def __post_init__(self) -> None:
        """Checks the other fields. Arguments come from a model, so the reply to the call reports mistakes in them."""
        if isinstance(self.args, str):
            force_setattr(self, "args", read_arguments(self.args))
        id, name, server, intent = cast("tuple[object, ...]", (self.id, self.name, self.server, self.intent))
        if not (isinstance(id, str) and isinstance(name, str) and isinstance(server, str) and isinstance(intent, str)):
            for field in ("id", "name", "server", "intent"):
                require(f"`{field}` of a call", getattr(self, field), str, "a string")
        if self.kind not in _KINDS:
            raise BadRequest(f"kind is {self.kind!r}; allowed: {', '.join(map(repr, _KINDS))}.")


class Output(Struct, frozen=True):
    """Return this from a tool when a plain value is not enough: content blocks, and whether they report an error."""

    content: list[Block]
    """A string becomes a single text block."""
    is_error: bool = False
    original: Any = None
    """The result in the host's own form. It comes back unchanged with the reply, even if the content is shortened."""

    def __post_init__(self) -> None:
        if isinstance(self.content, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # its characters would be taken for blocks
            force_setattr(self, "content", [{"type": "text", "text": self.content}])


class LineageSource(Struct, frozen=True):
    """A stored output that a query read: its name in the query, and what it was then."""

    name: str
    handle: str
    sha256: str


class LineageCall(Struct, frozen=True, omit_defaults=True):
    """A tool that a program called, and what it returned."""

    tool: str
    server: str
    sha256: str
    """The hash of the text of its result."""
    handle: str = ""
    """The handle of its result, if that was stored."""


class Lineage(Struct, frozen=True, omit_defaults=True):
    """What a stored output was made from, if a query or a program made it."""

    query: str
    sources: tuple[LineageSource, ...]
    calls: tuple[LineageCall, ...] = ()
    language: Literal["sql", "python"] = "sql"
    server: str = ""
    """The server it belongs to, if a program read that server's data or called its tools."""


class Kept(Struct, frozen=True, gc=False):
    """A stored output: its id, its size, and why it was kept."""

    session: str
    id: str
    tool: str
    reason: Reason
    size: Size
    sha256: str
    created_ms: int
    server: str = ""
    media: Media = "text"
    source: str = ""
    """Where it came from, for people to read, in at most 100 characters: `read_file: large.txt`."""
    blocks: tuple[int, ...] = ()
    """The byte offsets at which the second and later text blocks begin; empty for a single block."""
    missing: str = ""
    """Which bytes are not stored, and why; empty if every byte is stored."""
    is_plain: bool = False
    """Whether the whole output is known to be UTF-8 without NUL."""
    name_chars: int = handles.MIN_NAME_CHARS
    """The length of the name: longer only if a shorter name was taken. Outputs from before names existed have the shortest."""
    lineage: Lineage | None = None
    """None if it was not made from other outputs, or if an earlier version stored it."""

    @property
    def name(self) -> str:
        """`out_3f7k9q`: short, and unique among the outputs that a session can read."""
        return handles.name(self.id, self.name_chars)

    @property
    def handle(self) -> str:
        return handles.handle(self.session, self.id)

    @property
    def artifact_id(self) -> str:
        return handles.artifact_id(self.id)


class Truncation(Struct, frozen=True):
    """How the text was shortened."""

    original_size: int
    truncated_size: int
    strategy_used: str
    was_truncated: bool
    artifact_id: str | None = None
    original_tokens: int = 0
    truncated_tokens: int = 0
    omitted_lines: int = 0
    omitted_chars: int = 0


JobState: TypeAlias = Literal["queued", "running", "waiting", "ready", "failed", "cancelled"]
ENDED: tuple[JobState, ...] = ("ready", "failed", "cancelled")


OutputForm: TypeAlias = Literal["text", "json", "blocks", "bytes", "none"]
"""What a tool returned. The stored bytes are turned back into this form."""


class JobInfo(Struct, frozen=True):
    """A background job at the time of the reply."""

    id: str
    tool: str
    state: JobState


class Reply(Struct, frozen=True, kw_only=True):
    """What the model should see of a call, and what your program may want to know about it."""

    text: str
    content: list[Block]
    is_error: bool = False
    fits: bool = True
    """Whether the context has room for this reply. You get it even if not."""
    kept: Kept | None = None
    job: JobInfo | None = None
    truncation: Truncation | None = None
    new: bool = True
    """Whether the model has something to work with. False while the tool keeps running in the background."""
    model: str | None = None
    original: Any = None
    """The tool's `Output.original`; None while the tool is still running."""
    passed: bool = False
    """Whether the result is within the limits, or for a program, so that you may pass on `value` instead of `text`."""
    value: Any = None
    """The tool's own object if it passed, or if it cannot be written as text: a dataclass, an image, a framework's result.
    For a stream that passed, its text. None if the result was stored or shortened, or the tool raised an exception."""

    @property
    def tokens(self) -> int:
        return tokens.count(self.text, self.model).tokens


class Excerpt(Struct, frozen=True):
    """A verbatim passage of a stored output, checked against its bytes."""

    text: str
    start_byte: int
    end_byte: int
    start_char: int
    end_char: int
    start_line: int
    end_line: int
    chunk_index: int = 0
    verified: bool = True


class Decoding(Struct, frozen=True):
    """How text was read from stored bytes that are not UTF-8 themselves."""

    formats: tuple[str, ...] = ()
    """From the outside in: `("gzip", "UTF-16LE")`. Empty if the stored bytes were read without decoding."""
    guessed: bool = False
    """Whether the last of these formats is a guess."""
    bytes: int = 0
    """The size of the decoded text as UTF-8, which all positions refer to."""
    remarks: tuple[str, ...] = ()
    """Where decoding stopped and why, and what could not be decoded."""


Support: TypeAlias = Literal[
    "cited",  # the model named passages, and they were checked against the stored bytes
    "located",  # the model named none; the words of its answer were found in the output
    "",  # neither, or no model answered
]


# The engine's confidence in three steps. Of 1,630 unseen questions, half of them asked of an output without the answer, 86 % of
# the answers at LIKELY or above were right, 38 % of those below it, and 4 % of those below UNLIKELY.
LIKELY = 0.4
UNLIKELY = 0.08


class Extraction(Struct, frozen=True):
    """What was found in a stored output for a question, and how much of the output was searched."""

    text: str
    excerpts: tuple[Excerpt, ...]
    confidence: float
    """0…1: likely from 0.4 up, unlikely below 0.08."""
    strategy: str
    """What really answered: focused, full-chunked, read-grep, truncate, or builtin for the built-in engine."""
    source_hash: str
    source_size_bytes: int
    chunks_searched: int
    chunks_total: int
    model: str = ""
    found: bool = True
    warnings: tuple[str, ...] = ()
    """What the reader must know, such as a fallback that was used or a part that was not searched."""
    planned_strategy: str = ""
    """If the built-in engine answered: the strategy that a model would have followed."""
    decoding: Decoding | None = None
    """Set if the text was decoded first. Positions and quotes then refer to the decoded text."""
    is_nearest: bool = False
    """Whether nothing seems to answer the question, so that `text` shows only what comes nearest."""
    support: Support = ""
    """How the stored bytes support a model's answer."""
    passages: Extraction | None = None
    """What the built-in engine shows for the same question, to be shown below a model's answer."""
    unsupported: str = ""
    """What a model answered although nothing in the output supports it. The engine answers instead; show this last, marked."""

    def quotes(self, excerpt: Excerpt) -> bool:
        """Whether one of the extraction's excerpts contains all of this one."""
        return any(each.start_byte <= excerpt.start_byte and excerpt.end_byte <= each.end_byte for each in self.excerpts)
