"""Log lines about outputs: what was stored, cut or extracted. Never what is in them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from overspill.record.events import Entry, OutputExtracted, OutputStored
from overspill.text.humanize import one_line
from overspill.text.names import own_name
from overspill.types import Kind, ToolCall, Truncation

logger = logging.getLogger("overspill")
logger.addHandler(logging.NullHandler())  # a program that configures no logging shows nothing


def compose_name(tool: str, server: str, kind: Kind) -> str:
    return f"{provider(server, kind)}/{own_name(tool, server)}"


def provider(server: str, kind: Kind) -> str:
    return f"{kind}:{server}" if server else kind


def log_stored(event: OutputStored, level: int) -> None:
    kept = event.kept
    details = _labels(kept.tool, kept.server, event.kind) | {
        "handle": kept.handle,
        "reason": kept.reason,
        "bytes": kept.size.bytes,
        "lines": kept.size.lines,
        "tokens": kept.size.tokens,
        "tool_output": True,
    }
    level = logging.INFO if kept.reason == "requested" else level
    logger.log(level, "Tool '%s' output stored for tool_output (%s).", one_line(kept.tool), kept.reason, extra=details)


def log_cut(call: ToolCall, cut: Truncation) -> None:
    """Log an output that was shortened and not stored."""
    figures = ("original_size", "truncated_size", "original_tokens", "truncated_tokens", "omitted_lines", "omitted_chars")
    details = _labels(call.name, call.server, call.kind) | {"strategy": cut.strategy_used}
    details |= {name: getattr(cut, name) for name in figures}
    shown = (one_line(call.name), cut.truncated_size, cut.original_size, cut.strategy_used)
    logger.warning("Tool '%s' output cut to %d of %d characters (%s).", *shown, extra=details)


def log_extraction(event: OutputExtracted, handle: str) -> None:
    names = ("tool", "mode", "strategy", "fallback", "status", "model", "chunks_searched", "chunks_total", "latency")
    details: dict[str, Any] = {name: getattr(event, name) for name in names} | {"handle": handle}
    if event.status == "failed":
        logger.warning("Tool '%s' could not extract from %s (mode %s).", event.tool, handle, event.mode, extra=details)
        return
    facts = (event.mode, event.strategy, event.chunks_searched, event.chunks_total)
    how = "(mode %s, strategy %s, %d of %d chunks)."
    if event.fallback:
        by = {"builtin": "the built-in engine", "truncate": "truncation"}[event.fallback]
        logger.warning(f"Tool '%s' fell back to %s for %s {how}", event.tool, by, handle, *facts, extra=details)
    else:
        logger.info(f"Tool '%s' extracted from %s {how}", event.tool, handle, *facts, extra=details)


def _labels(tool: str, server: str, kind: Kind) -> dict[str, Any]:
    return {
        "tool": one_line(compose_name(tool, server, kind)),
        "tool_namespace": one_line(server),
        "provider": one_line(provider(server, kind)),
        "tool_kind": kind,
    }


Observer: TypeAlias = Callable[[str, Entry], None]
"""Called with the id of the session and the event, in the thread where it happened. Return soon, and do not wait."""
Observers: TypeAlias = Sequence[Observer]
_TRACE_KEYS = ("traceparent", "tracestate", "baggage")
_MAX_TRACE_CHARS = 8_192

trace_context: ContextVar[Mapping[str, str] | None] = ContextVar("overspill_trace_context", default=None)
"""The W3C trace context that came with the request that is being answered, if any."""


def tell(observers: Observers, session: str, event: Entry) -> None:
    for observe in observers:
        try:
            observe(session, event)
        except Exception as error:  # an observer's mistake must cost no tool its answer
            logger.warning("An observer failed: %s.", type(error).__name__)


@contextmanager
def carry_trace(meta: Mapping[str, Any]) -> Generator[None]:
    """Make events recorded inside the block part of the trace that a client sent."""
    found = {key: meta[key] for key in _TRACE_KEYS if isinstance(meta.get(key), str) and len(meta[key]) <= _MAX_TRACE_CHARS}
    if not found:
        yield
        return
    token = trace_context.set(found)
    try:
        yield
    finally:
        trace_context.reset(token)
