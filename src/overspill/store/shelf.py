"""What the shelves of every kind of store have in common: who may write, and what is being written."""

from __future__ import annotations

from collections.abc import Collection
from threading import Lock

from overspill import handles
from overspill.errors import StoreError
from overspill.store import rules
from overspill.store.protocols import Writer
from overspill.store.quota import OutputQuota
from overspill.store.writer import OutputParts, OutputWriter


class BaseShelf:
    """Without a quota, it is for reading only. Each kind of store adds how it reads, and what begins with an underscore here."""

    def __init__(self, session: str, quota: OutputQuota | None = None) -> None:
        self.session = session
        self._quota = quota
        self._writers: dict[str, OutputWriter] = {}
        self._is_closed = False
        self._mutex = Lock()

    def create(self, id: str) -> Writer:
        rules.check_id(id)
        with self._mutex:
            quota = self._check_writable()
            if id in self._writers:
                raise rules.already_exists_error(handles.handle(self.session, id))
            parts = self._make_parts(id)
            writer = self._writers[id] = OutputWriter(
                self.session, id, parts, quota=quota, check=self._check_writable, ended=self._forget_writer
            )
            return writer

    def append_journal(self, lines: bytes) -> None:
        rules.check_lines(lines)
        self._check_writable()
        self._write_journal(lines)

    def remove_unrecorded(self, recorded: Collection[str]) -> int:
        self._check_writable()
        with self._mutex:
            return self._remove_outputs({*recorded, *self._writers})

    def list_writing(self) -> list[str]:
        return list(self._writers)

    def close(self) -> None:
        with self._mutex:
            if self._is_closed:
                return
            self._is_closed = True
        for writer in list(self._writers.values()):
            writer.abandon()
        self._leave()

    def _make_parts(self, id: str) -> OutputParts:
        """Raises StoreError if the id is taken by an output that is not being written here."""
        raise NotImplementedError

    def _write_journal(self, lines: bytes) -> None:
        raise NotImplementedError

    def _remove_outputs(self, stays: Collection[str]) -> int:
        """All but those that stay. Returns how many bytes they had."""
        raise NotImplementedError

    def _leave(self) -> None:
        """Called once, when nothing is written any more."""

    def _is_inherited(self) -> bool:
        """Whether this is a forked child. The session is its parent's, and has not ended with it."""
        return False

    def _check_open(self) -> None:
        if self._is_closed:
            raise rules.closed_error("shelf")

    def _check_writable(self) -> OutputQuota:
        if self._quota is None:
            raise rules.read_only_error(self.session)
        self._check_open()
        if self._is_inherited():
            raise StoreError(
                f"Session {self.session} belongs to the process this one was forked from. Open a new session in this process."
            )
        return self._quota

    def _forget_writer(self, id: str) -> None:
        self._writers.pop(id, None)
