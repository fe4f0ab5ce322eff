"""A session's stored outputs: found by handle, artifact id or name, only by the session that owns them."""

from __future__ import annotations

import resource
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import RLock
from types import MappingProxyType
from typing import Any

from msgspec import structs

from overspill import errors, handles
from overspill.calls.job import Job, requester
from overspill.errors import AmbiguousName, BadRequest, ExpiredHandle, HandleError, StoreError, UnknownHandle
from overspill.gate.collect import CollectedResult
from overspill.gate.kept import BoundedCache, KnownOutputs
from overspill.reading import references
from overspill.redaction.policy import Redaction
from overspill.retrieval.group import SessionGroup
from overspill.retrieval.output import RunningReader, StoredOutput
from overspill.retrieval.views import TextViews
from overspill.settings import Settings
from overspill.store.protocols import Shelf
from overspill.store.readers import BytesReader
from overspill.text.humanize import one_line
from overspill.types import Kept, Size, ToolCall
from overspill.wording.presets import DOCUMENT, Wording
from overspill.wording.replies import tool_failure
from overspill.wording.retrieval import not_ready

MAX_OPEN_OUTPUTS = 16  # kept open with their line positions, because a model that reads an output usually reads it again
_MAX_OPEN_SHELVES = 4  # shelves of other sessions, kept open for the same reason
_DESCRIPTORS_FOR_ONE = 64  # how many the process must be allowed for each output kept open, to leave enough for other work
_MAX_RELATIVES = 1_000  # outputs of other sessions whose descriptions are in memory


class StoredOutputs:
    """Finds and opens the outputs of one session, and those that earlier sessions of its family stored.

    Ids of any other session are unknown here. The outputs of `jobs`, which run in the background, may not exist yet. Several
    threads may use it: looking up what left memory reads a whole journal.
    """

    def __init__(
        self,
        shelf: Shelf,
        known: KnownOutputs,
        family: SessionGroup | None = None,
        jobs: Mapping[str, Job] = MappingProxyType({}),
        words: Wording = DOCUMENT,
        redaction: Redaction | None = None,
    ) -> None:
        self._shelf = shelf
        self._kept, self._checkpoints, self._held, self._names = known.kept, known.checkpoints, known.held, known.names
        self._words, self._redaction = words, redaction or Redaction(Settings(), {})
        self._jobs = jobs
        self._family = family
        self._relatives: BoundedCache[Kept] = BoundedCache(_MAX_RELATIVES)
        self._relative_names: dict[str, set[str]] = {}
        self._shelves: OrderedDict[str, Shelf] = OrderedDict()
        self._recent: OrderedDict[str, StoredOutput] = OrderedDict()
        self._most_open = _count_affordable()
        self._views = TextViews()
        self._is_closed = False
        self._lock = RLock()

    def _spell_out(self, spelling: str) -> str:
        """The handle of the output with this short name. Any other spelling is returned as given. May block.

        The session's own outputs come first: their names were chosen so that no output of the family had them.
        """
        name = handles.parse_name(spelling)
        if name is None:
            return spelling
        found = {handles.handle(self._shelf.session, id) for id in self._names.find(name)}
        if not found and self._family is not None:
            found = self._relative_names.get(name) or self._family.find_named(name)
            self._relative_names |= {name: found} if found else {}  # the journals of the family are read once for each name
        if len(found) > 1:
            raise AmbiguousName(name, sorted(found))
        if not found:
            raise UnknownHandle(name)
        return next(iter(found))

    def file_id(self, spelling: str) -> str:
        spelling = self._spell_out(spelling)
        session, file = handles.parse(spelling)
        if session not in (None, self._shelf.session) and not self._find_in_group(spelling):
            raise UnknownHandle(spelling)
        return file

    def find_job(self, spelling: str) -> Job | None:
        """The job with that id. A client that asks for a job is notified when it ends, even if another client called its tool.

        Also finds a job of another session of the family, if it left no output: it failed, was interrupted, or runs elsewhere.
        """
        spelling = self._spell_out(spelling)
        _, file = handles.parse(spelling)
        job = self._jobs.get(file)
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
                raise BadRequest(tool_failure(job.error) if job.done else not_ready(has_wait_tool=self._words.has_closed_sets))
            raise UnknownHandle(spelling)
        return kept

    def tool_of(self, spelling: str) -> str:
        """The tool whose output it is or will be; `unknown` if it cannot be found."""
        try:
            spelling = self._spell_out(spelling)
            file = self.file_id(spelling)
            made = self._kept.get(file) or self._find_in_group(spelling) or self._jobs.get(file)
        except errors.OverspillError:
            return "unknown"
        return made.tool if made else "unknown"

    def _find_in_group(self, spelling: str) -> Kept | None:
        """An output of another session of the family."""
        if self._family is None:
            return None
        session, file = handles.parse(spelling)
        with self._lock:
            self._check_open()
            found = self._relatives.get(file)
            if found is None and (found := self._family.find(spelling)):
                self._relatives.put(file, found)
        return found if found and session in (None, found.session) else None

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
            if stored is not None and stored.is_removed:
                del self._recent[kept.id]  # left open: another retrieval may be reading it
                raise ExpiredHandle(spelling, one_line(kept.tool))
            if stored is not None and stored.damage:
                del self._recent[kept.id]  # its file has changed, so cached facts such as the positions of lines are wrong
                stored.check()
            if stored is not None and kept.id not in self._held:
                with suppress(HandleError, StoreError):  # it is open, and stays readable without the note
                    self._shelf_of(kept).note_read(kept.id)
            if stored is None:
                stored = self._recent[kept.id] = self._open_output(kept, spelling)
                if len(self._recent) > self._most_open:
                    self._recent.popitem(last=False)  # not closed, because another thread may still read it; freeing it closes it
            self._recent.move_to_end(kept.id)
            return stored

    def _open_output(self, kept: Kept, spelling: str) -> StoredOutput:
        redactors = self._redaction.for_reading(kept.tool, kept.server)
        if kept.id in self._held:
            held = BytesReader(self._held[kept.id])
            return StoredOutput(kept, held, views=self._views, words=self._words, redactors=redactors)
        try:
            shelf = self._shelf_of(kept)
            reader = shelf.open(kept.id)
        except UnknownHandle:
            raise ExpiredHandle(spelling, one_line(kept.tool)) from None
        shelf.note_read(kept.id)
        places = self._checkpoints.get(kept.id, ())
        stored = StoredOutput(kept, reader, places, self._views, words=self._words, redactors=redactors)
        try:
            stored.check()
        except StoreError:
            stored.close()
            raise
        return stored

    def _shelf_of(self, kept: Kept) -> Shelf:
        """Call it with the lock held: a shelf opened for one caller may be closed by the next call."""
        if kept.session == self._shelf.session or self._family is None:
            return self._shelf
        shelf = self._shelves.pop(kept.session, None) or self._family.open_shelf(kept)
        self._shelves[kept.session] = shelf
        if len(self._shelves) > min(_MAX_OPEN_SHELVES, self._most_open):
            self._shelves.popitem(last=False)[1].close()
        return shelf

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            while self._recent:
                self._recent.popitem()[1].close()
            while self._shelves:
                self._shelves.popitem()[1].close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise errors.SessionClosed("The session is closed, and with it its stored outputs.")

    def resolve(
        self, call: ToolCall, settings: Settings, check: references.Check | None
    ) -> tuple[Mapping[str, Any], Sequence[references.ReferenceUse]]:
        """The call's arguments, with references to stored outputs replaced by their content.

        Blocks. Raises RefError for a reference that cannot be resolved.
        """
        refs = settings.refs
        allow = [(way.from_, way.to) for way in refs.allow]
        return references.resolve(call, self._source, allow=allow, max_ref_bytes=refs.max_ref_bytes, check=check)

    def _source(self, spelling: str) -> references.ReferenceSource:
        stored = self.recent(spelling).as_stored()
        return references.ReferenceSource(stored.reader, stored.kept, stored.view)

    def partial(self, collected: CollectedResult, tool: str, server: str) -> StoredOutput:
        """The output that a tool has produced so far, while it is still running."""
        spool = collected.spool
        spool.flush()
        redactors = self._redaction.for_reading(tool, server)
        written = BytesReader(spool.read(0, spool.total)) if spool.in_memory else self._shelf.open(spool.id)
        reader = RunningReader(written, redactors.shown)
        size = Size(reader.size, 0, 0, 0)
        kept = Kept(self._shelf.session, spool.id, "", "background", size, "", handles.created_ms(spool.id))
        chars = handles.count_name_chars(self._names.give(spool.id))
        kept = structs.replace(kept, missing="still running", name_chars=chars)
        return StoredOutput(kept, reader, words=self._words, redactors=redactors)


def _count_affordable() -> int:
    """How many outputs may stay open, given the process's limit on open files."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_unlimited = descriptors == resource.RLIM_INFINITY
    return MAX_OPEN_OUTPUTS if is_unlimited else max(1, min(MAX_OPEN_OUTPUTS, descriptors // _DESCRIPTORS_FOR_ONE))
