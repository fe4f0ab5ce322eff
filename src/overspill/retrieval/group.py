"""Sessions of one owner. A later one may read what an ended one kept; workers that share a session read each other's outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import chain, zip_longest

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from overspill import handles
from overspill.calls.background import find_last_change, restore_job, was_interrupted
from overspill.calls.job import Job
from overspill.errors import HandleError, StoreError, UnknownHandle
from overspill.record import events
from overspill.record.events import JobChanged, OutputRetrieved, OutputStored
from overspill.store import rules
from overspill.store.conversations import conversation_in, is_over, is_running
from overspill.store.keep import list_shelves
from overspill.store.protocols import Shelf, ShelfLabel, Store
from overspill.text.lenient_json import ready
from overspill.types import Kept

JOBS = "/:jobs"
"""Follows a family's name in the names of the parts that hold jobs of a task engine. There may be many: one for each job."""
_STORED = '"event":"kept"'
_OLD_JOB_MS = 86_400_000  # jobs that were queued longer ago are not announced
_MAX_SESSIONS_TO_LIST_NAMES = 32
_MAX_SESSIONS_WITH_TASKS = 64  # the newest; servers do not keep tasks for long


def name_part(family: str, job: str) -> str:
    """The name of the part of a session that a job of a task engine has for itself."""
    return f"{family}{JOBS}/{job}"


class JobLines(Struct, frozen=True):
    """What a journal says about jobs: the last change of each, their outputs, and the ids of what was read."""

    changes: dict[str, JobChanged] = {}
    kept: dict[str, Kept] = {}
    read: frozenset[str] = frozenset()
    position: int = 0
    """How far the journal was read."""


class JobRecord(Struct, frozen=True):
    """What a worker of a task engine has recorded about a job, which has a separate part of the session."""

    change: JobChanged
    """The job's last change."""
    kept: Kept | None
    is_live: bool  # whether the worker is alive


class SessionGroup:
    """The sessions whose names are `name`, a slash, and a part that differs. All methods block.

    `shared_by` is the session of a worker that shares one with others: it also reads what those keep while they are live, and
    what was kept under the name itself, before it was shared. With a `conversation`, it shares only with workers of the same.
    """

    def __init__(self, store: Store, name: str, shared_by: str = "", conversation: str = "") -> None:
        self._store, self.name, self._conversation = store, name, conversation
        self._shared_by, self.is_shared = shared_by, bool(shared_by)
        self._job_lines: dict[str, JobLines | bytes] = {}
        """What was read of each session so far; encoded if it has ended and cannot be opened again by its name."""

    def find(self, spelling: str) -> Kept | None:
        session, file = handles.parse(spelling)
        for kept in self._find_recorded(file[-handles.ENDING_CHARS :]):
            if kept.id == file and session in (None, kept.session):
                return kept
        found = self._list_outputs(self._readable_sessions(session, file), file, having=file if session is None else "")
        return next((kept for kept in found if kept.id == file), None)

    def open_shelf(self, kept: Kept) -> Shelf:
        """The shelf of an output, for reading. Raises UnknownHandle or StoreError."""
        return self._store.read_shelf(kept.session)

    def find_named(self, name: str) -> set[str]:
        """The handles of the outputs that have this name."""
        ending = handles.ending(name)
        found = {kept.handle for kept in self._find_recorded(ending) if kept.name == name}
        elsewhere = () if found else self._list_outputs(self._readable_sessions(), ending)
        return found.union(kept.handle for kept in elsewhere if kept.name == name)

    def _find_recorded(self, ending: str) -> Iterator[Kept]:
        """The outputs whose ids end with `ending`, if the store has an index of them."""
        with suppress(StoreError):
            for session, line in self._store.find_recorded(ending):
                if any(self._has(label) and self._may_read(label) for label in self._find_label(session)):
                    yield from _stored_outputs([line], session)

    def list_names(self) -> set[str] | None:
        """All names of the family's outputs, including those of live sessions. None if it has too many sessions."""
        labels: list[ShelfLabel] = []
        with suppress(StoreError):
            for family in (self.name, self.name + JOBS):
                labels += self._store.shelves(family=family, most=_MAX_SESSIONS_TO_LIST_NAMES)
        if len(labels) >= _MAX_SESSIONS_TO_LIST_NAMES:
            return None
        return {kept.name for kept in self._list_outputs(labels, _STORED)}

    def find_job(self, spelling: str) -> Job | None:
        """A job of an ended session that failed, or was still running when the session ended; or one that another worker runs."""
        session, file = handles.parse(spelling)
        for shelf, is_live in self._open(self._readable_sessions(session, file)):
            with suppress(StoreError):
                if change := find_last_change(events.decode_events(shelf.journal(), about=file), file):
                    return None if change.state == "ready" else restore_job(change, is_live=is_live)
        return None

    def list_left_tasks(self) -> list[JobChanged]:
        """The jobs of ended sessions that their servers run as tasks, unless another session follows them."""
        last: dict[str, tuple[JobChanged, bool]] = {}
        found = (each for each in self._iterate_labels(with_parts=False) if each.live or self._may_read(each))
        newest_first = sorted(found, key=lambda label: label.session, reverse=True)
        for label in filter(self._has, newest_first[:_MAX_SESSIONS_WITH_TASKS]):
            with suppress(HandleError, StoreError), closing(self._store.read_shelf(label.session)) as shelf:
                about = events.decode_events(shelf.journal(), about='"task":"')
                last = {each.id: (each, label.live) for each in about if isinstance(each, JobChanged)} | last
        return [change for change, is_live in last.values() if not is_live and was_interrupted(change)]

    def list_unread_jobs(self) -> list[Job]:
        """The jobs of other live workers and of task engines that still run, or have ended and were not read yet.

        Raises StoreError if the store does not say which sessions there are.
        """
        found, read, in_background = dict[str, tuple[JobLines, bool]](), set[str](), set[str]()
        oldest = handles.first_of(events.now_ms() - _OLD_JOB_MS)
        listed = chain(list_shelves(self._store, self.name), list_shelves(self._store, self.name + JOBS, after=oldest))
        wanted = {label.session: label for label in listed if self._shares(label, or_is_over=True)}
        self._job_lines = {session: lines for session, lines in list(self._job_lines.items()) if session in wanted}
        for _, label in sorted(wanted.items(), reverse=True):
            with suppress(HandleError, StoreError):
                lines = self._read_job_lines(label)
                read |= lines.read
                # Only its worker records a call that was answered with its result, or whose caller still waits for it.
                in_background |= lines.changes.keys() - {label.session}
                for id, change in lines.changes.items():
                    # The worker that runs a job knows more about it than the one that queued it.
                    if id == label.session or (id not in found and (label.live or change.is_elsewhere)):
                        found[id] = (lines, label.live)
        jobs: list[Job] = []
        for id, (lines, is_live) in found.items():
            if id in in_background and id not in read:
                jobs.append(job := restore_job(lines.changes[id], is_live=is_live))
                job.kept = lines.kept.get(id)
        return jobs

    def _read_job_lines(self, label: ShelfLabel) -> JobLines:
        """What a session's journal says about jobs. Reads only the lines that are new."""
        if not self._has(label) or not self._may_read(label):
            return JobLines()
        known = self._job_lines.get(label.session, JobLines())
        if isinstance(known, bytes):
            return msgspec.json.decode(known, type=ready(JobLines))
        with closing(self._store.read_shelf(label.session)) as shelf:
            lines, position = shelf.read_on(known.position)
        known = _add_job_lines(known, lines, position)
        is_final = not label.live and rules.is_unique(label.name, label.session)
        self._job_lines[label.session] = msgspec.json.encode(known) if is_final else known
        return known

    def read_job(self, id: str) -> JobRecord | None:
        """What a worker of a task engine has recorded about a job. Raises StoreError."""
        try:
            label = self._store.label(id)
            if label.name != name_part(self.name, id):
                return None
            with closing(self._store.read_shelf(id)) as shelf:
                entries = list(events.decode_events(shelf.journal(), about=id))
        except HandleError:
            return None
        change = find_last_change(entries, id)
        kept = next((each.kept for each in entries if isinstance(each, OutputStored) and each.kept.id == id), None)
        return change and JobRecord(change, kept, label.live)

    def mark_aborted(self, job: Job) -> None:
        """Record that a job was aborted, in the job's part, which its worker checks. Raises StoreError if that part exists."""
        shelf = self._store.open_shelf(job.id, name=name_part(self.name, job.id), retention="keep")
        with closing(shelf):
            change = JobChanged(events.now_ms(), job.id, job.tool, "failed", job.seconds, "cancelled", job.server)
            shelf.append_journal(events.encode_events([change]))

    def read_output(self, kept: Kept) -> bytes:
        with closing(self._store.read_shelf(kept.session)) as shelf, closing(shelf.open(kept.id)) as reader:
            return reader.read(0, kept.size.bytes)

    def list_kept(self) -> list[Kept]:
        """The outputs of the sessions that this one is shared with, oldest session first."""
        shared = sorted(filter(self._shares, self._iterate_labels()), key=lambda label: label.session)
        return list(self._list_outputs(shared))

    def list_most_useful(self) -> list[Kept]:
        """Outputs that can still be read, those used last and those read most in turn. Includes live sessions."""
        found: dict[str, tuple[float, Kept]] = {}
        reads: Counter[str] = Counter()
        for shelf, is_live in self._open(self._iterate_labels()):
            with suppress(HandleError, StoreError):
                lines = list(shelf.journal())
                for kept in _stored_outputs(lines, shelf.session, _STORED) if not is_live or self.is_shared else ():
                    with suppress(UnknownHandle):
                        found[kept.id] = shelf.last_used(kept.id), kept
                about = events.decode_events(lines, about='"event":"retrieval"')
                reads.update(event.id for event in about if isinstance(event, OutputRetrieved) and event.status == "ok")
        by_use = sorted(found, key=lambda id: found[id][0], reverse=True)
        by_reads = sorted((id for id in by_use if reads[id]), key=lambda id: reads[id], reverse=True)
        turns = chain.from_iterable(zip_longest(by_use, by_reads))
        return [found[id][1] for id in dict.fromkeys(turns) if id is not None]

    def has_outputs(self) -> bool:
        """Whether any session has outputs. Stops at the first one that does."""
        return any(self._list_outputs(filter(self._may_read, self._iterate_labels())))

    def _readable_sessions(self, session: str | None = None, file: str = "") -> Iterator[ShelfLabel]:
        """The sessions that have ended, or whose client has, and those that this one is shared with. With a `file`, begins with
        the part of the job with this id, and skips the parts of other jobs: there may be many."""
        if session is None and file:
            yield from filter(self._may_read, self._find_label(file))
        labels = self._iterate_labels(with_parts=not file) if session is None else self._find_label(session)
        yield from filter(self._may_read, sorted(labels, key=lambda label: label.session, reverse=True))

    def _may_read(self, label: ShelfLabel) -> bool:
        if label.live:
            return self._shares(label, or_is_over=True)
        conversation = conversation_in(label.name)  # of another client that may still run: sessions also end with their hub
        return self._conversation in ("", conversation) or not is_running(conversation)

    def _shares(self, label: ShelfLabel, *, or_is_over: bool = False) -> bool:
        conversation = conversation_in(label.name)
        return (self.is_shared and self._conversation in ("", conversation)) or (or_is_over and is_over(conversation))

    def _list_outputs(self, labels: Iterable[ShelfLabel], about: str = "", *, having: str = "") -> Iterator[Kept]:
        """The outputs of these sessions, or only those on lines with the word `about`. `having`: an output that a session must
        have, because most do not, and their journals need not be read."""
        for shelf, _ in self._open(labels):
            with suppress(HandleError, StoreError):
                if having:
                    shelf.open(having).close()
                yield from _stored_outputs(shelf.journal(), shelf.session, about)

    def _open(self, labels: Iterable[ShelfLabel]) -> Iterator[tuple[Shelf, bool]]:
        """Open shelves for reading, one at a time, and say whether they are live. Skips sessions that were just removed."""
        for label in filter(self._has, labels):
            with suppress(HandleError, StoreError), closing(self._store.read_shelf(label.session)) as shelf:
                yield shelf, label.live

    def _has(self, label: ShelfLabel) -> bool:
        if (self.is_shared and label.name == self.name) or label.name == name_part(self.name, label.session):
            return True
        # A family `a` may not read what `a/b` has.
        return label.name.rpartition("/")[0] == self.name and label.session != self._shared_by

    def _iterate_labels(self, *, with_parts: bool = True) -> Iterator[ShelfLabel]:
        with suppress(StoreError):  # a store that cannot be read has nothing to offer, and the session works without it
            yield from list_shelves(self._store, self.name)
            if with_parts:
                yield from list_shelves(self._store, self.name + JOBS)

    def _find_label(self, session: str) -> list[ShelfLabel]:
        try:
            return [self._store.label(session)]
        except (HandleError, StoreError):
            return []


def _stored_outputs(lines: Iterable[bytes], session: str, about: str = "") -> Iterator[Kept]:
    for event in events.decode_events(lines, about=about):
        if isinstance(event, OutputStored) and event.kept.session == session and handles.is_uuid(event.kept.id):
            yield event.kept


def _add_job_lines(known: JobLines, lines: Iterable[bytes], position: int) -> JobLines:
    about = (b'"event":"job"', b'"event":"retrieval"', b'"reason":"background"')
    last, kept = dict(known.changes), dict(known.kept)
    read: set[str] = set()
    for event in events.decode_events(line for line in lines if any(each in line for each in about)):
        if isinstance(event, JobChanged):
            last[event.id] = event
        elif isinstance(event, OutputStored):
            kept[event.kept.id] = replace(event.kept, blocks=())  # there may be many, and they are not needed here
        elif isinstance(event, OutputRetrieved) and event.id:
            read.add(event.id)
    return JobLines(last, kept, known.read | read, position)
