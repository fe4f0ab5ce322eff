"""Keep the SDK from logging what our connections carry: it logs whole messages and session ids.

A program that uses the SDK itself, beside Overspill, keeps its log: only records of our own connections are dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_logger = logging.getLogger("mcp.client.streamable_http")
_is_ours: ContextVar[bool] = ContextVar("overspill_connection", default=False)


def _belongs_to_others(record: logging.LogRecord) -> bool:
    return not _is_ours.get()


@contextmanager
def drop_records() -> Generator[None]:
    """Drop the records of what runs inside, and of tasks started inside for as long as they run. The SDK handles each message in
    the context of its sender."""
    _logger.addFilter(_belongs_to_others)  # the same function is added once only
    before = _is_ours.set(True)
    try:
        yield
    finally:
        _is_ours.reset(before)
