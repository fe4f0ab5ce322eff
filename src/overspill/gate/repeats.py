"""Recognises an output that a session has already shown, so that the same text does not take up the context twice."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeAlias

from overspill.errors import HandleError, StoreError
from overspill.gate.collect import CollectedResult
from overspill.gate.intent import Intent
from overspill.store.protocols import Shelf
from overspill.types import Kept, ToolCall

MAX_SHOWN_OUTPUTS = 1_000
"""Outputs that are recognised when they come again: the latest."""

_Content: TypeAlias = tuple[str, tuple[int, ...], str]
"""The SHA-256, where the text blocks begin, and the server: references from another server need its permission."""


class ShownOutputs:
    """Its methods block. Only outputs that are stored whole are ever found."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._by_content: OrderedDict[_Content, tuple[Kept, Intent | None]] = OrderedDict()

    def note(self, kept: Kept, intent: Intent | None) -> None:
        """`intent` is what the reply that showed it was searched for."""
        if kept.missing or kept.media != "text":
            return
        self._by_content[_content(kept)] = kept, intent
        if len(self._by_content) > MAX_SHOWN_OUTPUTS:
            self._by_content.popitem(last=False)

    def has_answered(self, kept: Kept, intent: Intent | None) -> bool:
        """Whether the reply that showed it was searched for the same."""
        return self._by_content.get(_content(kept)) == (kept, intent)

    def find(self, call: ToolCall, collected: CollectedResult) -> Kept | None:
        """The output that this one repeats, if that is still stored."""
        spool = collected.spool
        sizes = (kept.size.bytes for kept, _ in tuple(self._by_content.values()))
        if collected.broke_off or collected.media != "text" or spool.total not in sizes:  # cheaper than hashing
            return None
        content = (spool.sha256, collected.boundaries, call.server)
        kept, _ = self._by_content.get(content, (None, None))
        if kept is not None and not self._is_stored(kept):
            self._by_content.pop(content, None)
            return None
        return kept

    def _is_stored(self, kept: Kept) -> bool:
        try:
            reader = self._shelf.open(kept.id)
        except (HandleError, StoreError):
            return False
        try:
            self._shelf.note_read(kept.id)  # a model that is referred to it may read it
            return reader.size == kept.size.bytes
        finally:
            reader.close()


def _content(kept: Kept) -> _Content:
    return kept.sha256, kept.blocks, kept.server
