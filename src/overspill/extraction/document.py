"""What an extraction works with: the stored output, the models it may ask, and how much it may spend."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from overspill.errors import OverspillError
from overspill.models.targets import Targets
from overspill.settings.keys import Fallback, ToolOutputSettings
from overspill.store.protocols import Reader
from overspill.types import Size

if TYPE_CHECKING:
    from overspill.lexical.select import Selection  # the engine takes long to import

ModelMode: TypeAlias = Literal["focused", "full-chunked", "read-grep", "snippets"]
"""`focused` reads only the engine's passages. `snippets`: full-chunked, verbatim only, chunks of half the window, 5 % overlap."""

Mode: TypeAlias = Literal["auto", ModelMode, "truncate"]

Strategy: TypeAlias = Literal["focused", "full-chunked", "read-grep", "truncate", "builtin"]
"""The strategy that answered. `builtin` is the engine, which needs no model."""

Contract: TypeAlias = Literal["wrapped", "plain"]
"""How to ask a model, and how to use its answer. `wrapped` follows the manuals: the report comes in a wrapper and is the
whole answer. `plain`: data first, then the question; any text is the report; the engine's passages go with every answer."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (chunks done, total chunks) after each chunk."""


OnInspection: TypeAlias = Callable[[str, bool, int, int], None]
"""Called after each Read or Grep of the sub-agent with the tool, whether it succeeded, the milliseconds it took, and how many
characters its answer has, for the journal. Does not get the arguments or the answer themselves."""


class ExtractionFailed(OverspillError):
    """A strategy could not be carried out. Finding nothing is not a failure."""

    strategy: Strategy | None = None
    """The strategy that failed; None if none was chosen yet."""


class Document(Struct, frozen=True):
    """A stored output. `args_json` holds the arguments of the call that produced it, verbatim."""

    handle: str
    tool: str
    args_json: str
    reader: Reader
    size: Size
    sha256: str


class Policy(ToolOutputSettings, frozen=True, kw_only=True):
    """The settings `toolOutput`, and the limits of one extraction."""

    concurrency: int = 8
    fallback: tuple[Fallback, ...] = ("builtin", "truncate")
    max_tokens: int = 2000
    """The most tokens of the answer."""
    max_bytes: int | None = None
    """The most bytes of the reply, including our own words."""
    max_turns: int = 15
    """The most turns of the read-grep sub-agent."""
    answer_bytes: int = 12_288
    """The most bytes of each answer from Read and Grep."""
    contract: Contract = "wrapped"
    focus_tokens: int = 2000
    """The most tokens of the passages that `focused` sends."""


def name_strategy(mode: ModelMode) -> Strategy:
    return "full-chunked" if mode == "snippets" else mode


Engine: TypeAlias = "Callable[[Document, str, int], Selection]"
"""(document, query, max tokens) -> selection. Blocks, so it runs in a worker thread."""


class Question(Struct, frozen=True):
    """A question about a document, its limits, and the engine that may answer it."""

    document: Document
    query: str
    policy: Policy
    engine: Engine | None


def limit_output(model: Targets) -> int:
    """Tokens reserved for the answer: at most half of the window."""
    return min(model.max_output_tokens, model.context_window // 2)
