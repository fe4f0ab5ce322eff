"""The names under which a model knows the retrieval tools: a host may put a prefix before them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_prefix: ContextVar[str] = ContextVar("overspill_tool_prefix", default="")
"""Travels with every task and thread that words an answer."""


@contextmanager
def prefixed(prefix: str) -> Generator[None]:
    """Texts that are worded inside call the retrieval tools by their names with this prefix."""
    before = _prefix.set(prefix)
    try:
        yield
    finally:
        _prefix.reset(before)


def tool_name(name: str) -> str:
    return _prefix.get() + name
