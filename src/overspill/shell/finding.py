"""Find an output by its name, also one that a command in the background is still printing."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from msgspec import Struct

from overspill import handles
from overspill.calls.background import find_last_change
from overspill.errors import HandleError, StoreError, UnknownHandle
from overspill.record import events
from overspill.record.events import CommandEnded, JobChanged, now_ms
from overspill.retrieval.archive import Archive
from overspill.retrieval.output import RunningReader, StoredOutput
from overspill.shell.keeping import FAMILY
from overspill.store.keep import list_shelves
from overspill.store.protocols import Shelf, ShelfLabel, Store
from overspill.store.readers import BytesReader
from overspill.types import Kept, Size
from overspill.wording import shell as wording

_LOOK_AGAIN_SECONDS = 0.2


class FoundOutput(Struct, frozen=True):
    """`note` is what to know about the command that printed it, if anything."""

    stored: StoredOutput
    note: str = ""


class OutputFinder:
    """Over the stores of all sessions of this user."""

    def __init__(self, stores: Sequence[Store], archive: Archive) -> None:
        self._stores = stores
        self._archive = archive

    def wait(self, spelling: str, seconds: float) -> None:
        """Return when the command has ended, or after so many seconds. Returns immediately if it is not running."""
        deadline = time.monotonic() + seconds
        while self._is_running(spelling) and (rest := deadline - time.monotonic()) > 0:
            time.sleep(min(_LOOK_AGAIN_SECONDS, rest))

    @contextmanager
    def open(self, spelling: str) -> Generator[FoundOutput]:
        """Raises HandleError if there is none."""
        try:
            found = self._archive.find(spelling)
        except HandleError as unknown:
            with self._open_unfinished(spelling, unknown) as unfinished:
                yield unfinished
            return
        with self._archive.open(found.kept.handle) as stored:
            stored.shown_id = stored.kept.artifact_id if handles.parse_name(spelling) is None else stored.kept.name
            yield FoundOutput(stored, self._describe_end(stored.kept))

    @contextmanager
    def _open_unfinished(self, spelling: str, unknown: HandleError) -> Generator[FoundOutput]:
        for label, shelf, change in self._unfinished(spelling):
            try:
                reader = RunningReader(shelf.open(change.id))
            except UnknownHandle:
                reader = BytesReader(b"")
            asked_ms, size = handles.created_ms(change.id), reader.size
            note = wording.so_far((now_ms() - asked_ms) / 1000, size) if label.live else wording.interrupted(size)
            kept = Kept(label.session, change.id, change.tool, "background", Size(size, 0, 0, 0), "", asked_ms)
            with StoredOutput(kept, reader) as stored:
                yield FoundOutput(stored, note)
            return
        raise unknown

    def _is_running(self, spelling: str) -> bool:
        return any(label.live and change.state in ("queued", "running") for label, _, change in self._unfinished(spelling))

    def _unfinished(self, spelling: str) -> Iterator[tuple[ShelfLabel, Shelf, JobChanged]]:
        """The last that is known of a command in the background. Until it has ended, its output has no name."""
        if handles.parse_name(spelling) is not None:
            return
        session, file = handles.parse(spelling)
        for store in self._stores:
            for label in list_shelves(store, FAMILY):
                if label.name != FAMILY and session in (None, label.session):
                    with suppress(HandleError, StoreError), closing(store.read_shelf(label.session)) as shelf:
                        lines = (line for line in shelf.journal() if file.encode() in line)
                        if change := find_last_change(events.decode_events(lines), file):
                            yield label, shelf, change

    def _describe_end(self, kept: Kept) -> str:
        for store in self._stores if kept.reason == "background" else ():
            with suppress(UnknownHandle), closing(store.read_shelf(kept.session)) as shelf:
                for event in events.decode_events(shelf.journal()):
                    if isinstance(event, CommandEnded) and event.id == kept.id:
                        return wording.ended(event.code)
        return ""
