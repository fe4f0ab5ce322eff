"""Decides from figures alone whether an output passes, is stored or is shortened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from overspill.settings import Settings
from overspill.text.tokens import MAX_EXACT_CHARS
from overspill.types import Reason, Size


class Room(Struct, frozen=True):
    """Tokens left in the context: now, and without the other results of this turn."""

    now: int
    alone: int


class Pass(Struct, frozen=True, tag=True):
    pass


class Keep(Struct, frozen=True, tag=True):
    reason: Reason


class Shorten(Struct, frozen=True, tag=True):
    """Truncate to the size cap, as `toolOutput.enabled: false` asks for."""


Verdict: TypeAlias = Pass | Keep | Shorten


def decide(size: Size, settings: Settings, room: Room | None = None) -> Verdict:
    """`settings` are the tool's. An output at a limit passes; the first trigger that fires names the reason."""
    if settings.off:
        return Pass()
    cap = settings.size_cap
    if not settings.tool_output.enabled:
        return Shorten() if cap and size.bytes > cap else Pass()
    threshold, chars = settings.effective_token_threshold, settings.truncation.inline_limit
    triggers: tuple[tuple[Reason, bool], ...] = (
        ("reserve_failed", room is not None and room.now < size.tokens <= room.alone),
        ("size_cap", 0 < cap < size.bytes),
        ("token_threshold", threshold is not None and size.tokens > threshold),
        ("char_limit", chars is not None and size.chars > chars),
        ("token_budget", room is not None and size.tokens > room.now),
    )
    return next((Keep(reason) for reason, fired in triggers if fired), Pass())


def deciding_bytes(settings: Settings) -> int:
    """The largest output whose tokens matter to the decision. A larger one is over the limit in bytes."""
    return settings.size_cap if settings.size_cap and not settings.off else MAX_EXACT_CHARS


def keeps_nothing(settings: Settings) -> bool:
    return settings.off or not settings.tool_output.enabled


def passes_for_sure(texts: Sequence[str], settings: Settings) -> bool:
    """Whether the texts together cannot exceed any limit. Counting is then unnecessary, because a token has at least one byte."""
    if settings.off:
        return True
    length = max_bytes = 0
    for text in texts:
        length += len(text)
        max_bytes += len(text) if text.isascii() else len(text) * 4
    cap, threshold = settings.size_cap, settings.effective_token_threshold
    chars = settings.truncation.inline_limit
    return (not cap or max_bytes <= cap) and (threshold is None or max_bytes <= threshold) and (chars is None or length <= chars)
