"""One session's objects: opened for reading, or held by the session that writes to them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from threading import Lock

from overspill import handles
from overspill.errors import StoreError, UnknownHandle
from overspill.store import rules
from overspill.store.copies import LocalCopies
from overspill.store.objects import removal
from overspill.store.objects.bucket import Bucket
from overspill.store.objects.journal import ObjectJournal, read_lines
from overspill.store.objects.output import USED, ObjectReader, ObjectWriter, Parts, folder, open_output, read_parts
from overspill.store.objects.run import Run
from overspill.store.protocols import Retention, Writer
from overspill.store.quota import OutputQuota

_SECONDS_BETWEEN_NOTES = 3_600
_MAX_NOTES = 1_000
_NOTHING = Parts([], 0, is_done=False, is_removed=False, used=0)


class ObjectShelf:
    """For reading only."""

    def __init__(self, bucket: Bucket, copies: LocalCopies, session: str) -> None:
        self.session = session
        self._bucket = bucket
        self._copies = copies
        self._is_closed = False
        self._noted: dict[str, float] = {}

    def create(self, id: str) -> Writer:
        raise rules.read_only_error(self.session)

    def open(self, id: str) -> ObjectReader:
        rules.check_id(id)
        self._check_open()
        return open_output(self._bucket, self._copies, self.session, id)

    def note_read(self, id: str) -> None:
        # The limits count days, so that many reads of one output need one note.
        if not handles.is_uuid(id) or time.monotonic() < self._noted.get(id, 0):
            return
        if len(self._noted) >= _MAX_NOTES:
            self._noted.clear()
        self._noted[id] = time.monotonic() + _SECONDS_BETWEEN_NOTES
        # A store that is away cannot note the read, but cannot expire either.
        with suppress(StoreError):
            self._bucket.put(folder(self.session, id) + USED)

    def append_journal(self, lines: bytes) -> None:
        raise rules.read_only_error(self.session)

    def journal(self) -> Iterator[bytes]:
        self._check_open()
        opening = self._bucket.get(f"openings/{self.session}")
        if opening is None:
            raise UnknownHandle(f"session-{self.session}")
        yield opening[0]
        yield from read_lines(self._bucket, self.session)

    def remove_unrecorded(self, recorded: Container[str]) -> int:
        raise rules.read_only_error(self.session)

    def close(self) -> None:
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise rules.closed_error("shelf")


class LiveObjectShelf(ObjectShelf):
    """`still_has_name` asks the service whether the session's name is still held here."""

    def __init__(
        self,
        bucket: Bucket,
        copies: LocalCopies,
        session: str,
        *,
        run: Run,
        hold: str,
        retention: Retention,
        quota: OutputQuota,
        still_has_name: Callable[[], bool],
        ended: Callable[[LiveObjectShelf], None],
    ) -> None:
        super().__init__(bucket, copies, session)
        self.retention: Retention = retention
        self.hold = hold
        self._run = run
        self._lapses = run.lapses
        self._quota = quota
        self._still_has_name = still_has_name
        self._ended = ended
        self._journal = ObjectJournal(bucket, session, hold)
        self._writers: dict[str, ObjectWriter] = {}
        self._mutex = Lock()

    def create(self, id: str) -> ObjectWriter:
        """Nothing is asked of the service yet: the first write creates the output, or finds that the id is taken."""
        rules.check_id(id)
        with self._mutex:
            self._check_not_closed()
            if id in self._writers:
                raise rules.already_exists_error(handles.handle(self.session, id))
            writer = self._writers[id] = ObjectWriter(
                self._bucket, self.session, id, quota=self._quota, check=self._check_writable, ended=self._forget_writer
            )
            return writer

    def open(self, id: str) -> ObjectReader:
        writer = self._writers.get(id)
        if writer is not None and not writer.size:
            self._check_open()
            return ObjectReader(self._bucket, self._copies, self.session, id, _NOTHING)
        return super().open(id)

    def append_journal(self, lines: bytes) -> None:
        rules.check_lines(lines)
        self._check_writable()
        self._journal.append(lines)

    def remove_unrecorded(self, recorded: Container[str]) -> int:
        self._check_writable()
        with self._mutex:
            ids = removal.list_outputs(self._bucket, self.session)
            doomed = [id for id in ids if id not in recorded and id not in self._writers]
            removed = 0
            for id in doomed:
                parts = read_parts(self._bucket, self.session, id)
                removed += parts.size if parts and not parts.is_removed else 0
                removal.delete_output(self._bucket, self.session, id)
        return removed

    @property
    def run_id(self) -> str:
        return self._run.id

    def list_writing(self) -> list[str]:
        return list(self._writers)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for writer in list(self._writers.values()):
            writer.abandon()
        if not self._is_inherited:  # in a forked child, the session belongs to its parent and has not ended
            with suppress(StoreError):
                if self.retention != "session":
                    self._journal.close()
            self._ended(self)

    def _check_not_closed(self) -> None:
        self._check_open()
        if self._is_inherited:
            raise StoreError(
                f"Session {self.session} belongs to the process this one was forked from. Open a new session in this process."
            )

    def _check_writable(self) -> None:
        """After the lease has run out, the service is asked once whether another process has taken the session."""
        self._check_not_closed()
        lapses = self._run.check_lease()
        if lapses != self._lapses:
            if not self._still_has_name():
                raise StoreError(
                    f"Session {self.session} can no longer write: this process was out of touch with the store for so long that "
                    "it was taken for dead. What was stored before is still there. Open the session again."
                )
            self._lapses = lapses

    @property
    def _is_inherited(self) -> bool:
        return self._run.pid != os.getpid()

    def _forget_writer(self, id: str) -> None:
        self._writers.pop(id, None)
