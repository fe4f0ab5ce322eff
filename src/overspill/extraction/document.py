"""What an extraction is given: the stored output, who may be asked about it, and how much it may cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from overspill.errors import OverspillError
from overspill.models.protocol import Request, Response
from overspill.models.targets import Check
from overspill.settings.keys import Fallback
from overspill.store.protocols import Reader
from overspill.types import Size

ModelMode: TypeAlias = Literal["full-chunked", "read-grep", "snippets"]
"""`snippets` is full-chunked for verbatim passages alone: chunks of half the window, 5 % overlap."""

Mode: TypeAlias = Literal["auto", ModelMode, "truncate"]

Strategy: TypeAlias = Literal["full-chunked", "read-grep", "truncate", "builtin"]
"""What answered. `builtin` is the engine that needs no model."""

Progress: TypeAlias = Callable[[int, int], None]
"""(chunks done, chunks to do), each time a chunk is done."""


class Inspection(Struct, frozen=True):
    """One call of the sub-agent that reads and greps, for the record: neither what it asked nor what it was shown."""

    tool: str
    ok: bool
    latency_ms: int
    chars: int
    """Of the answer."""


OnInspection: TypeAlias = Callable[[Inspection], None]


class ExtractionFailed(OverspillError):
    """The strategy could not be carried out. That nothing was found is no failure."""

    strategy: Strategy | None = None
    """Which, where nothing answered in its place."""


class Document(Struct, frozen=True):
    """A stored output. `args_json` are the arguments of the call it came from, verbatim."""

    handle: str
    tool: str
    args_json: str
    reader: Reader
    size: Size
    sha256: str


class Policy(Struct, frozen=True, kw_only=True):
    max_chunks: int = 1
    """Only for routing: up to so many chunks `auto` reads everything."""
    overlap_percent: int = 10
    avg_line_bytes_threshold: int = 1000
    max_extraction_chunks: int = 64
    """Chunks that one extraction asks about; the next one with the same question goes on from there."""
    concurrency: int = 8
    within_secs: float | None = None
    fallback: tuple[Fallback, ...] = ("builtin", "truncate")
    max_tokens: int = 2000
    """Of the answer."""
    max_turns: int = 15
    """Of the read-grep sub-agent."""
    answer_bytes: int = 12_288
    """Of each answer that Read and Grep give it."""


class ModelPool(Protocol):
    """Models behind one door, which asks them again where one fails, or gives an answer that does not pass the check."""

    @property
    def name(self) -> str: ...
    @property
    def context_window(self) -> int: ...
    @property
    def max_output_tokens(self) -> int: ...
    async def ask(self, request: Request, check: Check) -> Response: ...


class ByteSpan(Protocol):
    @property
    def start_byte(self) -> int: ...
    @property
    def end_byte(self) -> int: ...


class Selection(Protocol):
    """What an engine without a model found."""

    @property
    def text(self) -> str: ...
    @property
    def excerpts(self) -> Sequence[ByteSpan]: ...
    @property
    def confidence(self) -> float: ...
    @property
    def matched(self) -> int: ...
    @property
    def searched_bytes(self) -> int: ...


Engine: TypeAlias = Callable[[Document, str, int], Selection]
"""(document, query, most tokens) -> selection. Blocks; it is called in a worker thread."""


def limit_output(model: ModelPool) -> int:
    """What is kept free for the answer: where the window is small, no more than half of it."""
    return min(model.max_output_tokens, model.context_window // 2)
