"""The names under which a model knows the retrieval tools: a host may put a prefix before them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

prefix: ContextVar[str] = ContextVar("overspill_tool_prefix", default="")
"""What texts put before the names now. Travels with every task and thread that words an answer."""


@contextmanager
def prefixed(by: str) -> Generator[None]:
    """Texts that are worded inside call the retrieval tools by their names with this prefix."""
    before = prefix.set(by)
    try:
        yield
    finally:
        prefix.reset(before)


def tool_name(name: str) -> str:
    return prefix.get() + name
