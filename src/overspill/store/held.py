"""What a store in memory holds: sessions and their outputs."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from overspill.store import keep, rules
from overspill.store.files.journal import Opening
from overspill.store.keep import KeptItem
from overspill.store.protocols import Retention, Shelf, ShelfLabel
from overspill.store.writer import OutputParts


class HeldOutput(OutputParts):
    def __init__(self, outputs: dict[str, HeldOutput], id: str) -> None:
        self.data = bytearray()
        self.is_complete = False
        self.removed = False
        self.used = time.time()
        self._outputs = outputs
        self._id = id
        outputs[id] = self

    def add(self, data: memoryview) -> None:
        self.data += data
        self.size = len(self.data)
        self.used = time.time()

    def complete(self) -> None:
        self.is_complete = True

    def remove(self) -> None:
        del self._outputs[self._id]


class HeldSession:
    def __init__(self, session: str, name: str, retention: Retention) -> None:
        self.session = session
        self.name = name
        self.retention: Retention = retention
        self.outputs: dict[str, HeldOutput] = {}
        self.lines = [Opening.now(session, name, retention).line]
        self.used = time.time()
        self.holder: Shelf | None = None

    @property
    def family(self) -> str:
        return keep.family_of(self.name)

    @property
    def label(self) -> ShelfLabel:
        return ShelfLabel(self.session, live=self.holder is not None, name=self.name, retention=self.retention)

    @property
    def size(self) -> int:
        return sum(len(output.data) for output in self.outputs.values()) + sum(map(len, self.lines))

    def items(self) -> list[KeptItem]:
        """What the keep limits may remove of it."""
        if self.holder is None:
            used = max([self.used, *(each.used for each in self.outputs.values())])
            return [KeptItem(self.session, "", used, self.size, self.family)]
        complete = [(id, output) for id, output in self.outputs.items() if output.is_complete]
        return [KeptItem(self.session, id, output.used, len(output.data), self.family) for id, output in complete]


class HeldContent(Struct):
    """What the keep limits look at."""

    now: float
    items: list[KeptItem]
    bytes: dict[str, int]
    remove: Callable[[KeptItem], bool]


class MemoryReader:
    def __init__(self, output: HeldOutput) -> None:
        self._output: HeldOutput | None = output

    @property
    def size(self) -> int:
        return len(self._readable().data)

    def read(self, start: int, end: int) -> bytes:
        return bytes(self._readable().data[max(start, 0) : max(end, 0)])

    def buffer(self) -> memoryview:
        output = self._readable()
        # A view of a bytearray forbids it to grow, so what is still written is shown as a copy.
        return memoryview(output.data).toreadonly() if output.is_complete else memoryview(bytes(output.data))

    @property
    def is_removed(self) -> bool:
        return self._readable().removed

    def close(self) -> None:
        self._output = None

    def _readable(self) -> HeldOutput:
        if self._output is None:
            raise rules.closed_error("reader")
        return self._output
