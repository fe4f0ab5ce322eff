"""A session's stored outputs: found by handle, artifact id or name, only by the session that owns them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import RLock
from types import MappingProxyType, TracebackType
from typing import Any

from msgspec import structs

from overspill import handles, reading
from overspill.calls.job import Job, requester
from overspill.errors import BadRequest, ExpiredHandle, OverspillError, SessionClosed, StoreError, UnknownHandle
from overspill.gate.collect import CollectedResult
from overspill.gate.kept import KeptOutputs
from overspill.gate.names import OutputNames
from overspill.reading import references
from overspill.reading.positions import View
from overspill.reading.query import Found, query
from overspill.retrieval.group import GroupOutput, SessionGroup
from overspill.retrieval.readers import RunningReader
from overspill.retrieval.spelling import NameFinder
from overspill.retrieval.views import TextView, TextViews, describe_gaps
from overspill.settings import Settings
from overspill.sql.answers import SqlAnswer, query_text
from overspill.store.protocols import Reader, Shelf
from overspill.store.readers import BytesReader
from overspill.text import encoding
from overspill.text.humanize import one_line
from overspill.types import Kept, Size, ToolCall
from overspill.wording import not_ready, tool_failure

MAX_OPEN_OUTPUTS = 16  # kept open with their line positions, because a model that reads an output usually reads it again
_EVERYTHING = reading.Bound(1 << 62)


class StoredOutput:
    """One stored output, to read without a model. Bytes and characters count from 0, lines from 1.

    The methods that read raise StoreError if another program has shortened or extended its file.
    """

    def __init__(
        self,
        kept: Kept,
        reader: Reader,
        checkpoints: Sequence[tuple[int, int, int]] = (),
        views: TextViews | None = None,
        *,
        shows_name: bool = False,
    ) -> None:
        self.kept = kept
        self.shows_name = shows_name
        """Whether answers call it by its name, and not by its handle or artifact id."""
        self.shown_id = kept.name if shows_name else kept.artifact_id
        self.reader = reader
        self.view = View(reader, checkpoints=checkpoints)
        self._views = views or TextViews()

    @property
    def damage(self) -> str:
        """What is wrong with its size, or an empty string. `overspill verify` also checks its content."""
        size, stored = self.reader.size, self.kept.size.bytes
        return "" if size == stored else f"it has {size:,} bytes; {stored:,} were stored"

    def check(self) -> None:
        if damage := self.damage:
            again = f"Call {one_line(self.kept.tool)} again." if self.kept.tool else "Call the tool again."
            raise StoreError(f"The output {self.kept.artifact_id!r} is damaged on disk: {damage}. {again}")

    def bytes(self, start: int = 0, end: int | None = None) -> bytes:
        self.check()
        return self.reader.read(start, self.reader.size if end is None else end)

    def text(self) -> str:
        return encoding.decode(self.bytes())

    def decoded(self) -> TextView:
        """The text in it: the stored bytes themselves if they are UTF-8, else decompressed, from another encoding, or the pages
        of a PDF. Raises NotText if there is none."""
        self.check()
        return self._views.get(self.kept, self.reader, self.view)

    def lines(self, first: int = 1, last: int | None = None) -> str:
        """Lines `first` to `last`, both included."""
        self.check()
        return reading.lines(self.reader, self.view, first, last, _EVERYTHING).text

    def grep(self, pattern: str, *, context: int = 0, ignore_case: bool = False, literal: bool = False) -> reading.Grep:
        self.check()
        return reading.grep(
            self.reader, self.view, pattern, _EVERYTHING, context=context, ignore_case=ignore_case, literal=literal
        )

    def query(self, expression: str) -> Found:
        """A JSON pointer (`/items/0/name`) or a JMESPath expression."""
        self.check()
        return query(self.reader, expression, _EVERYTHING)

    def sql(self, statement: str, seconds: float = 10.0) -> SqlAnswer:
        """Query the tables in it, which are called `output`. `session.sql` queries several outputs, and keeps them loaded."""
        text = self.decoded()
        return query_text(statement, text.reader, seconds, describe_gaps(self.kept, text))

    def close(self) -> None:
        self.reader.close()

    def __enter__(self) -> StoredOutput:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class StoredOutputs:
    """Finds and opens the outputs of one session, and those that earlier sessions of its family stored.

    Ids of any other session are unknown here. Several threads may use it: looking up what left memory reads a whole journal.
    """

    def __init__(
        self,
        shelf: Shelf,
        kept: KeptOutputs | Mapping[str, Kept],
        checkpoints: Mapping[str, Sequence[tuple[int, int, int]]],
        held: Mapping[str, bytes] = MappingProxyType({}),
        family: SessionGroup | None = None,
        names: OutputNames | None = None,
        *,
        shows_names: bool = False,
    ) -> None:
        self._shelf = shelf
        self._kept = kept
        self._held = held
        self._checkpoints = checkpoints
        self._names = names or OutputNames()
        self._spell_out = NameFinder(shelf.session, self._names, family).spell_out
        self._shows_names = shows_names
        self.jobs: Mapping[str, Job] = {}
        """Background jobs, whose outputs may not exist yet."""
        self._family = family
        self._relatives: dict[str, GroupOutput] = {}
        self._recent: OrderedDict[str, StoredOutput] = OrderedDict()
        self._views = TextViews()
        self._is_closed = False
        self._lock = RLock()

    def file_id(self, spelling: str) -> str:
        spelling = self._spell_out(spelling)
        session, file = handles.parse(spelling)
        if session not in (None, self._shelf.session) and not self._find_in_group(spelling):
            raise UnknownHandle(spelling)
        return file

    def find_job(self, spelling: str) -> Job | None:
        """The job with that id. A client that asks for a job is told when it ends, even if another client called its tool.

        Also finds a job of another session of the family, if it left no output: it failed, was interrupted, or runs elsewhere.
        """
        spelling = self._spell_out(spelling)
        _, file = handles.parse(spelling)
        job = self.jobs.get(file)
        if job is None and self._family is not None and file not in self._kept and not self._find_in_group(spelling):
            return self._family.find_job(spelling)
        self.file_id(spelling)
        if job is not None and (client := requester.get()) is not None:
            client.note_asked_for(job)
        return job

    def find(self, spelling: str) -> Kept:
        spelling = self._spell_out(spelling)
        file = self.file_id(spelling)
        kept = self._kept.get(file) or self._find_in_group(spelling)
        if kept is None:
            if job := self.find_job(spelling):
                raise BadRequest(tool_failure(job.error) if job.done else not_ready())
            raise UnknownHandle(spelling)
        return kept

    def tool_of(self, spelling: str) -> str:
        """The tool whose output it is or will be; `unknown` if there is none."""
        try:
            spelling = self._spell_out(spelling)
            file = self.file_id(spelling)
            made = self._kept.get(file) or self._find_in_group(spelling) or self.jobs.get(file)
        except OverspillError:
            return "unknown"
        return made.tool if made else "unknown"

    def _find_in_group(self, spelling: str) -> Kept | None:
        """An output of another session of the family. Its shelf is opened once and stays open until this session closes."""
        if self._family is None:
            return None
        session, file = handles.parse(spelling)
        with self._lock:
            self._check_open()
            found = self._relatives.get(file)
            if found is None and (found := self._family.find(spelling)):
                self._relatives[file] = found
        return found.kept if found and session in (None, found.kept.session) else None

    def open(self, spelling: str) -> StoredOutput:
        kept = self.find(spelling)
        with self._lock:
            self._check_open()
            return self._open_output(kept, spelling)

    def recent(self, spelling: str) -> StoredOutput:
        """Like `open`, but shared between retrievals: do not close it."""
        kept = self.find(spelling)
        with self._lock:
            self._check_open()
            stored = self._recent.get(kept.id)
            if stored is not None and stored.reader.is_removed:
                del self._recent[kept.id]  # left open: another retrieval may be reading it
                raise _expired_error(kept, spelling)
            if stored is not None and stored.damage:
                del self._recent[kept.id]  # what is known about it, such as where its lines are, is no longer true
                stored.check()
            if stored is not None and kept.id not in self._held:
                self._shelf_of(kept).note_read(kept.id)
            if stored is None:
                stored = self._recent[kept.id] = self._open_output(kept, spelling)
                if len(self._recent) > MAX_OPEN_OUTPUTS:
                    self._recent.popitem(last=False)  # not closed, because another thread may still read it; freeing it closes it
            self._recent.move_to_end(kept.id)
            return stored

    def _open_output(self, kept: Kept, spelling: str) -> StoredOutput:
        if kept.id in self._held:
            return StoredOutput(kept, BytesReader(self._held[kept.id]), views=self._views, shows_name=self._shows_names)
        shelf = self._shelf_of(kept)
        try:
            reader = shelf.open(kept.id)
        except UnknownHandle:
            raise _expired_error(kept, spelling) from None
        shelf.note_read(kept.id)
        stored = StoredOutput(kept, reader, self._checkpoints.get(kept.id, ()), self._views, shows_name=self._shows_names)
        try:
            stored.check()
        except StoreError:
            stored.close()
            raise
        return stored

    def _shelf_of(self, kept: Kept) -> Shelf:
        return self._shelf if kept.session == self._shelf.session else self._relatives[kept.id].shelf

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            while self._recent:
                self._recent.popitem()[1].close()
            while self._relatives:
                self._relatives.popitem()[1].shelf.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise SessionClosed("The session is closed, and with it its stored outputs.")

    def resolve(
        self, call: ToolCall, settings: Settings, check: references.Check | None
    ) -> tuple[Mapping[str, Any], Sequence[references.ReferenceUse]]:
        """The call's arguments, with references to stored outputs replaced by their content.

        Blocks. Raises RefError for a reference that cannot be resolved.
        """
        return references.resolve(
            call.args,
            self._source,
            tool=call.name,
            server=call.server,
            allow=[(way.from_, way.to) for way in settings.refs.allow],
            max_ref_bytes=settings.refs.max_ref_bytes,
            check=check,
        )

    def _source(self, spelling: str) -> references.ReferenceSource:
        stored = self.recent(spelling)
        return references.ReferenceSource(stored.reader, stored.kept, stored.view)

    def partial(self, collected: CollectedResult) -> StoredOutput:
        """What a tool that is still running has produced so far."""
        spool = collected.spool
        spool.flush()
        reader = BytesReader(spool.read(0, spool.total)) if spool.in_memory else RunningReader(self._shelf.open(spool.id))
        size = Size(reader.size, 0, 0, 0)
        kept = Kept(self._shelf.session, spool.id, "", "background", size, "", handles.created_ms(spool.id))
        chars = handles.count_name_chars(self._names.give(spool.id))
        kept = structs.replace(kept, missing="still running", name_chars=chars)
        return StoredOutput(kept, reader, shows_name=self._shows_names)


def _expired_error(kept: Kept, spelling: str) -> ExpiredHandle:
    return ExpiredHandle(spelling, one_line(kept.tool))
