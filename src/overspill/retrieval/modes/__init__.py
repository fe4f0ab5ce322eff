"""The modes of `get_tool_output` that need no model. `retrieval/exact.py` registers them."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from overspill.reading import Bound
from overspill.retrieval.definitions import GetToolOutput
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.pages import Page


class ExactMode(Struct, frozen=True, kw_only=True):
    read: Callable[[StoredOutput, GetToolOutput, Bound], Page]
    reads_running: bool = False
    """Whether it can read what a running tool has produced so far."""
    reads_binary: bool = False
    """Whether it handles outputs that are not text itself."""
