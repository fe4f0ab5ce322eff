"""Who else sees what happens in a session, as it happens."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from logging import getLogger
from typing import Any, TypeAlias

from overspill.record.events import Entry

Observer: TypeAlias = Callable[[str, Entry], None]
"""Called with the id of the session and the event, in whichever thread it happened. Return soon, and do not wait."""
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
            getLogger("overspill").warning("An observer failed: %s.", type(error).__name__)


@contextmanager
def carry_trace(meta: Mapping[str, Any]) -> Generator[None]:
    """Make what is recorded meanwhile part of the trace that a client sent."""
    found = {key: meta[key] for key in _TRACE_KEYS if isinstance(meta.get(key), str) and len(meta[key]) <= _MAX_TRACE_CHARS}
    if not found:
        yield
        return
    token = trace_context.set(found)
    try:
        yield
    finally:
        trace_context.reset(token)
