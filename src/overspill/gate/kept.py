"""What a session holds in memory about its outputs, with limits. Everything else is in the journal and the store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from threading import Lock
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from overspill import handles
from overspill.errors import HandleError, StoreError
from overspill.gate.collect import CollectedResult
from overspill.gate.intent import Intent
from overspill.record.events import OutputStored
from overspill.record.ledger import Ledger
from overspill.store.protocols import Shelf
from overspill.store.spool import MEMORY, SealedOutput
from overspill.text.names import describe_source
from overspill.types import Block, Kept, Reason, ToolCall
from overspill.wording.replies import stopped_early

MAX_OUTPUTS_IN_MEMORY = 1_000
"""How many stored outputs have their descriptions in memory. Of all others, only the ids are in memory."""
MAX_UNSTORED_OUTPUTS = 1_000
"""How many outputs that could not be stored have their beginnings in memory."""
MAX_CHECKPOINTS = 65_536
"""The total for all stored outputs of a session. One for each 64 KiB covers the latest 4 GiB."""
MAX_ARGUMENT_CHARS = 1 << 20
"""The total for the arguments of all calls with a stored output."""
MAX_HELD_BYTES = 64 * MEMORY
"""The total for outputs that could not be stored. Even beyond this, the beginning of each is held."""
MAX_INLINE_BLOB_BYTES = 64 << 20
"""The total for images and similar blocks from background results. Beyond this, they are stored instead."""
_MIN_HELD_BYTES = 4096

T = TypeVar("T")


class LateOutput(Struct, frozen=True):
    """What is left of a result that finished in the background."""

    blocks: Sequence[Block] = ()
    kept: Kept | None = None
    missing: str = ""
    """The part that could not be stored, and why."""
    error: str = ""
    """Why nothing is left."""


def describe_kept(
    call: ToolCall, collected: CollectedResult, sealed: SealedOutput, reason: Reason, session: str, name: str
) -> Kept:
    id = collected.spool.id
    return Kept(
        session=session,
        id=id,
        tool=call.name,
        server=(collected.lineage and collected.lineage.server) or call.server,
        reason=reason,
        size=sealed.size,
        sha256=sealed.sha256,
        created_ms=handles.created_ms(id),
        media=collected.media,
        source=describe_source(call.name, call.args),
        blocks=collected.boundaries,
        missing=sealed.missing or (collected.broke_off and stopped_early(collected.broke_off)),
        is_plain=sealed.is_plain,
        name_chars=handles.count_name_chars(name),
        lineage=collected.lineage,
    )


class BoundedCache(OrderedDict[str, T], Generic[T]):
    """Drops its oldest entries when their total exceeds `limit`. Without `measure`, each entry counts as one."""

    def __init__(self, limit: int, measure: Callable[[T], int] = lambda _: 1) -> None:
        super().__init__()
        self._limit = limit
        self._measure = measure
        self._total = 0

    def put(self, id: str, value: T) -> None:
        if not (size := self._measure(value)):
            return
        if id in self:
            self._total -= self._measure(self.pop(id))
        self[id] = value
        self._total += size
        while self._total > self._limit:
            self._total -= self._measure(self.popitem(last=False)[1])


class KeptOutputs:
    """Outputs by id. Looks up stored outputs that have left memory in the journal."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._ids: set[str] = set()
        self._latest: BoundedCache[Kept] = BoundedCache(MAX_OUTPUTS_IN_MEMORY)
        self.unstored: BoundedCache[Kept] = BoundedCache(MAX_UNSTORED_OUTPUTS)

    @property
    def ids(self) -> Collection[str]:
        """The ids of stored outputs."""
        return self._ids

    def add(self, kept: Kept) -> None:
        self._ids.add(kept.id)
        self._latest.put(kept.id, kept)

    def get(self, id: str) -> Kept | None:
        kept = self._latest.get(id) or self.unstored.get(id)
        if kept is None and id in self._ids:
            events = self._ledger.events_about(id)
            kept = next((event.kept for event in events if isinstance(event, OutputStored) and event.kept.id == id), None)
            if kept is not None:
                self.add(kept)
        return kept

    def latest(self) -> list[Kept]:
        """The outputs in memory, oldest first."""
        return [*self._latest.values(), *self.unstored.values()]

    def __contains__(self, id: str) -> bool:
        return id in self._ids or id in self.unstored

    def __len__(self) -> int:
        return len(self._ids) + len(self.unstored)

    def __iter__(self) -> Iterator[Kept]:
        """All outputs, oldest first."""
        if len(self._ids) <= len(self._latest):
            yield from self.latest()
            return
        events = self._ledger.events_about("kept")
        yield from (event.kept for event in events if isinstance(event, OutputStored) and event.kept.id in self._ids)
        yield from self.unstored.values()


class HeldOutputs(BoundedCache[bytes]):
    """The beginnings of outputs that could not be stored, and the size of other blocks held in memory."""

    inline_blob_bytes = 0
    """The size of the blobs from results that finished in the background."""

    @property
    def room(self) -> int:
        """How many bytes of the next output may be held."""
        return min(MEMORY, max(_MIN_HELD_BYTES, MAX_HELD_BYTES - sum(map(len, self.values()))))


class KnownOutputs:
    """What a session's gate records, and readers of its outputs look up. `list_taken` is the same as in `OutputNames`."""

    def __init__(self, ledger: Ledger, list_taken: Callable[[], Iterable[str] | None] = tuple) -> None:
        self.kept = KeptOutputs(ledger)
        self.checkpoints: BoundedCache[list[tuple[int, int, int]]] = BoundedCache(MAX_CHECKPOINTS, len)
        """For each stored output, places to count lines and characters from. Without any, counting starts at zero."""
        self.arguments: BoundedCache[str] = BoundedCache(MAX_ARGUMENT_CHARS, len)
        """For each stored output, the arguments of its call as JSON, for prompts. Kept in memory only."""
        self.held = HeldOutputs(MAX_UNSTORED_OUTPUTS)
        self.names = OutputNames(list_taken)


_CHARS_WITHOUT_LIST = 10
"""50 random bits. With a million outputs in a family, one in a billion new outputs would get a name that is already taken."""


class OutputNames:
    """Gives names that are unique in the session and its family. If a name is taken, the next output gets a longer one.

    `list_taken` lists the names of the family's outputs. It may block, and runs only when the first name is given: most sessions
    store nothing and need not read the journals of others. If there are too many names, it returns None, and names get so long
    that no two are equal.
    """

    def __init__(self, list_taken: Callable[[], Iterable[str] | None] = tuple) -> None:
        self._ids: dict[str, str] = {}
        self._others: dict[str, set[str]] = {}
        """Further outputs with the same name. Only outputs stored before names were introduced can share one."""
        self._earlier: list[tuple[str, int]] = []
        self._list_taken = list_taken
        self._lock = Lock()

    @cached_property
    def _taken(self) -> frozenset[str] | None:
        found = self._list_taken()
        return None if found is None else frozenset(found)

    def note(self, id: str, chars: int = handles.MIN_NAME_CHARS) -> None:
        """Note an output that was stored earlier. There may be many, so their names are made only when needed."""
        self._earlier.append((id, chars))

    def _spell_earlier(self) -> None:
        with self._lock:
            earlier, self._earlier = self._earlier, []
            for id, chars in earlier:
                if not handles.is_uuid(id):  # damaged
                    continue
                name = handles.name(id, chars)
                if (holder := self._ids.setdefault(name, id)) != id:
                    self._others.setdefault(name, {holder}).add(id)

    def give(self, id: str) -> str:
        """The name of a new output. Returns the same name each time."""
        self._spell_earlier()
        with self._lock:
            taken = self._taken
        name = ""
        fewest = handles.MIN_NAME_CHARS if taken is not None else _CHARS_WITHOUT_LIST
        for chars in range(fewest, handles.MAX_NAME_CHARS + 1):
            name = handles.name(id, chars)
            if name not in (taken or ()) and self._ids.setdefault(name, id) == id:  # atomic, for thread safety
                break
        return name

    def find(self, name: str) -> set[str]:
        """The ids that have this name."""
        self._spell_earlier()
        holder = self._ids.get(name)
        return self._others.get(name) or (set() if holder is None else {holder})


MAX_SHOWN_OUTPUTS = 1_000
"""How many of the latest outputs are recognised when they recur."""

_Content: TypeAlias = tuple[str, tuple[int, ...], str]
"""The SHA-256, the start of each text block, and the server. References from another server need its permission."""


class ShownOutputs:
    """Its methods block. Finds only outputs that are stored in full and were shown in the same conversation."""

    def __init__(self, shelf: Shelf, ledger: Ledger) -> None:
        self._shelf, self._ledger = shelf, ledger
        self._conversation = 0
        self._by_content: OrderedDict[_Content, tuple[Kept, Intent | None]] = OrderedDict()

    def note(self, kept: Kept, intent: Intent | None) -> None:
        """`intent` is the intent that the reply answered."""
        if kept.missing or kept.media != "text":
            return
        self._forget_others()
        self._by_content[_content(kept)] = kept, intent
        if len(self._by_content) > MAX_SHOWN_OUTPUTS:
            self._by_content.popitem(last=False)

    def has_answered(self, kept: Kept, intent: Intent | None) -> bool:
        """Whether the reply that showed it was for the same intent."""
        return self._by_content.get(_content(kept)) == (kept, intent)

    def find(self, call: ToolCall, collected: CollectedResult) -> Kept | None:
        """The output that this one repeats, if it is still stored."""
        self._forget_others()
        if collected.broke_off or collected.media != "text":
            return None
        content = (collected.spool.sha256, collected.boundaries, call.server)
        kept, _ = self._by_content.get(content, (None, None))
        if kept is not None and not self._is_stored(kept):
            self._by_content.pop(content, None)
            return None
        return kept

    def _forget_others(self) -> None:
        if self._conversation != self._ledger.conversations:
            self._conversation = self._ledger.conversations
            self._by_content.clear()

    def _is_stored(self, kept: Kept) -> bool:
        try:
            reader = self._shelf.open(kept.id)
        except (HandleError, StoreError):
            return False
        try:
            self._shelf.note_read(kept.id)  # the model gets a reference to it, and may read it
            return reader.size == kept.size.bytes
        finally:
            reader.close()


def _content(kept: Kept) -> _Content:
    return kept.sha256, kept.blocks, kept.server
