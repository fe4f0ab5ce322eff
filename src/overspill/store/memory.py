"""Outputs in memory, for one process, with the same promises as files."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator
from threading import RLock

from overspill import handles
from overspill.errors import UnknownHandle
from overspill.store import keep, rules
from overspill.store.keep import KeptItem, Opening
from overspill.store.protocols import Expired, KeepLimits, Retention, Shelf, ShelfLabel
from overspill.store.quota import GIB, HOUR, KeepGuard, OutputQuota, Quota
from overspill.store.shelf import BaseShelf, OutputParts


class HeldOutput(OutputParts):
    def __init__(self, outputs: dict[str, HeldOutput], id: str) -> None:
        self.data = bytearray()
        self.is_complete = self.removed = False
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
        self.family = keep.family_of(name)
        self.retention: Retention = retention
        self.outputs: dict[str, HeldOutput] = {}
        self.lines = [Opening.now(session, name, retention).line]
        self.used = time.time()
        self.holder: Shelf | None = None

    @property
    def label(self) -> ShelfLabel:
        return ShelfLabel(self.session, live=self.holder is not None, name=self.name, retention=self.retention)

    @property
    def size(self) -> int:
        return sum(output.size for output in self.outputs.values()) + sum(map(len, self.lines))

    def items(self) -> list[KeptItem]:
        """The items that the keep limits may remove."""
        if self.holder is None:
            used = max([self.used, *(each.used for each in self.outputs.values())])
            return [KeptItem(self.session, "", used, self.size, self.family)]
        complete = [(id, output) for id, output in self.outputs.items() if output.is_complete]
        return [KeptItem(self.session, id, output.used, output.size, self.family) for id, output in complete]


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
        # A bytearray cannot grow while a view of it exists, so an output still being written is shown as a copy.
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


class MemoryStore:
    """Stored outputs live as long as this instance."""

    url = "memory:"

    def __init__(self, *, run_bytes: int = 10 * GIB, sweep_seconds: float = HOUR) -> None:
        self._quota = Quota(run_bytes)
        self._guard = KeepGuard(self.expire, sweep_seconds=sweep_seconds)
        self._sessions: dict[str, HeldSession] = {}
        self._names: dict[str, str] = {}
        """The last session of each name. Only that can be live or kept."""
        self._mutex = RLock()

    def open_shelf(
        self, session: str, *, name: str = "", retention: Retention = "session", limits: KeepLimits | None = None
    ) -> MemoryShelf:
        rules.check_id(session)
        rules.check_name(name)
        with self._mutex:
            if limits and self._guard.is_due(limits):
                self._guard.apply(limits)
            held = self._sessions.get(self._names.get(name, "")) if name else None
            if held is None or not keep.choose_named(name, [held.label]):
                if session in self._sessions:
                    raise rules.already_exists_error(f"session-{session}")
                held = self._sessions[session] = HeldSession(session, name, retention)
                self._names[name] = session
            held.used = time.time()
            quota = self._guard.make_quota(self._quota, held.session, held.family, held.retention, limits)
            held.holder = shelf = MemoryShelf(held, quota, self)
            return shelf

    def read_shelf(self, session: str) -> MemoryShelf:
        return MemoryShelf(self._get_session(session), None, self)

    def label(self, session: str) -> ShelfLabel:
        return self._get_session(session).label

    def shelves(self, *, family: str = "", after: str = "", most: int | None = None) -> list[ShelfLabel]:
        with self._mutex:
            found = (each for each in self._sessions.values() if not family or family in keep.list_families(each.name))
            return [each.label for each in sorted(found, key=lambda each: each.session) if each.session > after][:most]

    def find_recorded(self, ending: str) -> list[tuple[str, bytes]]:
        return []

    def remove_shelf(self, session: str) -> None:
        with self._mutex:
            found = self._get_session(session)
            if found.holder:
                raise rules.still_live_error(session)
            self._remove(found)

    def empty_shelf(self, session: str) -> int:
        with self._mutex:
            found = self._get_session(session)
            complete = [id for id, output in found.outputs.items() if output.is_complete]
            self.remove_outputs(found, complete)
            return len(complete)

    def expire(self, limits: KeepLimits, *, family: str | None = None) -> Expired:
        def remove(item: KeptItem) -> bool:
            found = self._sessions[item.session]
            self.remove_outputs(found, [item.id]) if item.id else self._remove(found)
            return True

        with self._mutex:
            kept = [found for found in self._sessions.values() if found.retention == "keep"]
            items = [item for found in kept for item in found.items()]
            sizes: Counter[str] = Counter()
            for found in kept:
                sizes[found.family] += found.size
            return keep.expire(items, sizes, remove, limits, now=time.time(), family=family)

    def free(self) -> int:
        return self._quota.left

    def close(self) -> None:
        for found in list(self._sessions.values()):
            if (holder := found.holder) is not None:
                holder.close()  # not while holding the mutex, which a shelf that removes outputs waits for
            if found.retention == "process":
                with self._mutex:
                    self._remove(found)

    def end_session(self, session: HeldSession) -> None:
        with self._mutex:
            self._guard.leave(session.session)
            session.holder = None
            session.used = time.time()
            if session.retention == "session":
                self._remove(session)

    def remove_outputs(self, session: HeldSession, ids: Collection[str]) -> int:
        """Remove these outputs, and return how many bytes they had."""
        with self._mutex:
            removed = [session.outputs.pop(id) for id in ids]
            for id, output in zip(ids, removed, strict=True):
                output.removed = True
                self._quota.release(session.session, id)
            return sum(output.size for output in removed)

    def _get_session(self, session: str) -> HeldSession:
        rules.check_id(session)
        if session not in self._sessions:
            raise UnknownHandle(f"session-{session}")
        return self._sessions[session]

    def _remove(self, session: HeldSession) -> None:
        if self._sessions.pop(session.session, None) and self._names.get(session.name) == session.session:
            del self._names[session.name]
        self.remove_outputs(session, list(session.outputs))
        self._quota.release(session.session)


class MemoryShelf(BaseShelf):
    def __init__(self, held: HeldSession, quota: OutputQuota | None, store: MemoryStore) -> None:
        super().__init__(held.session, quota)
        self._held = held
        self._store = store

    def open(self, id: str) -> MemoryReader:
        return MemoryReader(self._find(id))

    def last_used(self, id: str) -> float:
        return self._find(id).used

    def _find(self, id: str) -> HeldOutput:
        rules.check_id(id)
        self._check_open()
        if id not in self._held.outputs:
            raise UnknownHandle(handles.handle(self.session, id))
        return self._held.outputs[id]

    def note_read(self, id: str) -> None:
        if output := self._held.outputs.get(id):
            output.used = time.time()

    def journal(self) -> Iterator[bytes]:
        return iter(self.read_on(0)[0])

    def read_on(self, position: int) -> tuple[list[bytes], int]:
        self._check_open()
        lines = self._held.lines[position:]
        return lines, position + len(lines)

    def _make_parts(self, id: str) -> HeldOutput:
        if id in self._held.outputs:
            raise rules.already_exists_error(handles.handle(self.session, id))
        return HeldOutput(self._held.outputs, id)

    def _write_journal(self, lines: bytes) -> None:
        self._held.lines += rules.split_lines(lines)
        self._held.used = time.time()

    def _remove_outputs(self, stays: Collection[str]) -> int:
        return self._store.remove_outputs(self._held, [id for id in self._held.outputs if id not in stays])

    def _leave(self) -> None:
        if self._quota is not None:
            self._store.end_session(self._held)

    def _is_inherited(self) -> bool:
        return False  # a forked child has its own copy
