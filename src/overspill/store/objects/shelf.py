"""One session's objects: read by everyone, and written by the process that holds the session."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from overspill import handles
from overspill.errors import UnknownHandle
from overspill.store.objects import removal
from overspill.store.objects.bucket import Bucket
from overspill.store.objects.journal import ObjectJournal, read_entries
from overspill.store.objects.names import Names
from overspill.store.objects.output import NOTHING_YET, USED, ObjectParts, ObjectSource, folder, read_parts, recorded_key
from overspill.store.objects.run import Run
from overspill.store.shared.lease import lost_session_error
from overspill.store.shared.output import LocalCopies
from overspill.store.shared.shelf import Hold, SharedShelf


class ObjectShelf(SharedShelf):
    seconds_between_notes = 3_600.0

    def __init__(self, bucket: Bucket, session: str, copies: LocalCopies, hold: Hold | None = None) -> None:
        super().__init__(session, copies, hold)
        self._bucket = bucket

    def _find(self, id: str, *, is_begun: bool) -> ObjectSource:
        parts = read_parts(self._bucket, self.session, id) if is_begun else NOTHING_YET
        if parts is None or parts.is_removed:
            raise UnknownHandle(handles.handle(self.session, id))
        return ObjectSource(self._bucket, self.session, id, parts)

    def _note_read(self, id: str) -> None:
        self._bucket.put(folder(self.session, id) + USED)

    def _read_opening(self) -> bytes:
        opening = self._bucket.get(f"openings/{self.session}")
        if opening is None:
            raise UnknownHandle(f"session-{self.session}")
        return opening[0]

    def _read_entries(self, position: int) -> list[tuple[int, bytes]]:
        return read_entries(self._bucket, self.session, position)


def hold_key(session: str, hold: str, run: Run) -> str:
    return f"holds/{session}/{hold}/{run.id}"


class LiveObjectShelf(ObjectShelf):
    def __init__(self, bucket: Bucket, names: Names, session: str, name: str, copies: LocalCopies, hold: Hold, run: Run) -> None:
        super().__init__(bucket, session, copies, hold)
        self._hold_id = hold.id
        self._names = names
        self._name = name
        self._run = run
        self._lapses = run.lapses
        self._mark = hold_key(session, hold.id, run)
        self._journal = ObjectJournal(bucket, session, hold.id)

    def _make_parts(self, id: str) -> ObjectParts:
        return ObjectParts(self._bucket, self.session, id, self._check_held)

    def _write_recorded(self, lines: bytes, recorded: Sequence[tuple[str, bytes]]) -> None:
        self._check_held()
        for id, line in recorded:  # first, so that what the journal has is always found
            self._bucket.put(recorded_key(self.session, id), line)
        self._journal.append(lines)
        self._check_held()

    def _remove_outputs(self, stays: Collection[str]) -> int:
        self._check_held()
        removed = 0
        for id in removal.list_outputs(self._bucket, self.session):
            if id not in stays:
                parts = read_parts(self._bucket, self.session, id)
                removed += parts.size if parts and not parts.is_removed else 0
                removal.delete_output(self._bucket, self.session, id)
        return removed

    def leave(self, hold: Hold) -> None:
        if not self._still_has_name():
            self._bucket.delete([self._mark])
            return
        if hold.retention == "session":
            removal.delete_session(self._bucket, self.session)
            self._bucket.delete([f"temporary/{self._run.id}/{self.session}"])
        else:
            self._journal.close()
            self._bucket.put(f"used/{self.session}")
            self._bucket.delete([self._mark])
        if self._name:
            self._names.release(self._name, hold.id, keep=hold.retention == "keep")

    def _check_held(self) -> int:
        """After the lease has run out, the service is asked once whether another process has taken the session.

        It cannot refuse a write for that reason, so this is called after each write too: what may have arrived too late is not
        acknowledged. Returns how often the lease has run out.
        """
        lapses = self._run.check_lease()
        if lapses != self._lapses:
            if not self._still_has_name():
                raise lost_session_error(self.session)
            self._bucket.put(self._mark)  # others may have cleared it away
            self._lapses = lapses
        return lapses

    def _still_has_name(self) -> bool:
        """Also false if the session was removed."""
        has_name = not self._name or self._names.is_held_by(self._name, self._hold_id)
        return has_name and self._bucket.find(f"openings/{self.session}") is not None
