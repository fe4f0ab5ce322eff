"""What a session holds in memory of its outputs, and how much of it at most. The journal and the store have the rest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from overspill import handles
from overspill.gate.collect import CollectedResult
from overspill.gate.names import OutputNames
from overspill.record.events import OutputStored
from overspill.record.ledger import Ledger
from overspill.store.spool import MEMORY, SealedOutput
from overspill.text.names import describe_source
from overspill.types import Block, Kept, Reason, ToolCall

MAX_OUTPUTS_IN_MEMORY = 1_000
"""Stored outputs whose descriptions are in memory. The others have only their ids there."""
MAX_UNSTORED_OUTPUTS = 1_000
"""Outputs that could not be stored, of which memory holds the beginning."""
MAX_CHECKPOINTS = 65_536
"""For all stored outputs of a session: one for each 64 KiB, so enough for the latest 4 GiB."""
MAX_ARGUMENT_CHARS = 1 << 20
"""For the arguments of all calls whose output was stored, together."""
MAX_HELD_BYTES = 64 * MEMORY
"""For all outputs that could not be stored, together. The beginning of each is held, even when this is reached."""
MAX_INLINE_BLOB_BYTES = 64 << 20
"""Of images and the like that came with results in the background. When this is reached, more of them are stored instead."""
_MIN_HELD_BYTES = 4096

T = TypeVar("T")


class LateOutput(Struct, frozen=True):
    """What became of a result that finished in the background."""

    blocks: Sequence[Block] = ()
    kept: Kept | None = None
    missing: str = ""
    """What could not be stored, and why."""
    error: str = ""
    """Why nothing of it is left."""


def describe_kept(
    call: ToolCall, collected: CollectedResult, sealed: SealedOutput, reason: Reason, session: str, name: str
) -> Kept:
    id = collected.spool.id
    return Kept(
        session=session,
        id=id,
        tool=call.name,
        server=call.server,
        reason=reason,
        size=sealed.size,
        sha256=sealed.sha256,
        created_ms=handles.created_ms(id),
        media=collected.media,
        source=describe_source(call.name, call.args),
        blocks=collected.boundaries,
        missing=sealed.missing or (collected.broke_off and f"the tool failed before it finished: {collected.broke_off}"),
        is_plain=sealed.is_plain,
        name_chars=handles.count_name_chars(name),
        lineage=collected.lineage,
    )


class KeptOutputs:
    """By id. An output that left memory is looked up in the journal: none becomes unknown."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._ids: set[str] = set()
        self._latest: OrderedDict[str, Kept] = OrderedDict()
        self._unstored: OrderedDict[str, Kept] = OrderedDict()

    @property
    def ids(self) -> Collection[str]:
        """Of those that are stored."""
        return self._ids

    def add(self, kept: Kept) -> None:
        self._ids.add(kept.id)
        self._latest[kept.id] = kept
        if len(self._latest) > MAX_OUTPUTS_IN_MEMORY:
            self._latest.popitem(last=False)

    def add_unstored(self, kept: Kept) -> None:
        self._unstored[kept.id] = kept
        if len(self._unstored) > MAX_UNSTORED_OUTPUTS:
            self._unstored.popitem(last=False)

    def get(self, id: str) -> Kept | None:
        kept = self._latest.get(id) or self._unstored.get(id)
        if kept is None and id in self._ids:
            events = self._ledger.events_about(id)
            kept = next((event.kept for event in events if isinstance(event, OutputStored) and event.kept.id == id), None)
            if kept is not None:
                self.add(kept)
        return kept

    def latest(self) -> list[Kept]:
        """Those in memory, oldest first."""
        return [*self._latest.values(), *self._unstored.values()]

    def __contains__(self, id: str) -> bool:
        return id in self._ids or id in self._unstored

    def __len__(self) -> int:
        return len(self._ids) + len(self._unstored)

    def __iter__(self) -> Iterator[Kept]:
        """All of them, oldest first."""
        if len(self._ids) <= len(self._latest):
            yield from self.latest()
            return
        events = self._ledger.events_about("kept")
        yield from (event.kept for event in events if isinstance(event, OutputStored) and event.kept.id in self._ids)
        yield from self._unstored.values()


class HeldOutputs(OrderedDict[str, bytes]):
    """Beginnings of outputs that could not be stored, and how much else is held in memory."""

    inline_blob_bytes = 0
    """Of results that finished in the background."""

    @property
    def inline_blob_room(self) -> int:
        return MAX_INLINE_BLOB_BYTES - self.inline_blob_bytes

    @property
    def room(self) -> int:
        """Bytes that the next one may have."""
        return min(MEMORY, max(_MIN_HELD_BYTES, MAX_HELD_BYTES - sum(map(len, self.values()))))

    def add(self, id: str, data: bytes) -> None:
        self[id] = data
        if len(self) > MAX_UNSTORED_OUTPUTS:
            self.popitem(last=False)


class BoundedCache(OrderedDict[str, T], Generic[T]):
    """Drops its oldest entries when all of them together measure more than `limit`."""

    def __init__(self, limit: int, measure: Callable[[T], int]) -> None:
        super().__init__()
        self._limit = limit
        self._measure = measure
        self._total = 0

    def put(self, id: str, value: T) -> None:
        if not (size := self._measure(value)) or id in self:
            return
        self[id] = value
        self._total += size
        while self._total > self._limit:
            self._total -= self._measure(self.popitem(last=False)[1])


class KnownOutputs:
    """What a session's gate fills and those who read its outputs look up. `list_taken` is as in `OutputNames`."""

    def __init__(self, ledger: Ledger, list_taken: Callable[[], Iterable[str] | None] = tuple) -> None:
        self.kept = KeptOutputs(ledger)
        self.checkpoints: BoundedCache[list[tuple[int, int, int]]] = BoundedCache(MAX_CHECKPOINTS, len)
        """By stored output, places from which to count lines and characters. Where they are missing, counting starts at zero."""
        self.held = HeldOutputs()
        self.names = OutputNames(list_taken)
