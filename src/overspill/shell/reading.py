"""What `overspill get` prints: a bounded part of an output, even of a running one, and the command for the next part."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress

from msgspec import Struct

from overspill import handles, reading
from overspill.calls.background import find_last_change
from overspill.errors import BadRequest, HandleError, NotText, StoreError, UnknownHandle
from overspill.reading import Bound, Range
from overspill.record import events
from overspill.record.events import CommandEnded, JobChanged, now_ms
from overspill.retrieval import pages
from overspill.retrieval.archive import Archive
from overspill.retrieval.definitions import parse_range
from overspill.retrieval.output import RunningReader, StoredOutput
from overspill.retrieval.pages import Page
from overspill.shell.keeping import FAMILY
from overspill.store.keep import list_shelves
from overspill.store.protocols import Shelf, ShelfLabel
from overspill.store.readers import BytesReader
from overspill.types import Kept, Size
from overspill.wording import shell as wording

_NOTHING = ("null", "[]")
"""The results of an expression that matches nothing. A stored null or empty list looks the same."""


class OutputFinder(Struct, frozen=True):
    """Searches the stores of all sessions of this user."""

    archive: Archive

    def wait(self, spelling: str, seconds: float) -> None:
        """Return when the command has ended, or after `seconds`. Returns immediately if it is not running."""
        deadline = time.monotonic() + seconds
        while (rest := deadline - time.monotonic()) > 0:
            found = self._unfinished(spelling)
            if not any(label.live and change.state in ("queued", "running") for label, _, change in found):
                return
            time.sleep(min(0.2, rest))

    @contextmanager
    def open(self, spelling: str) -> Generator[tuple[StoredOutput, str]]:
        """Open an output, with a note on the command that printed it, if needed. Raises HandleError if it does not exist."""
        try:
            found = self.archive.find(spelling)
        except HandleError as unknown:
            for label, shelf, change in self._unfinished(spelling):
                with self._open_unfinished(label, shelf, change) as unfinished:
                    yield unfinished
                return
            raise unknown from None
        with self.archive.open(found.kept.handle) as stored:
            stored.shown_id = stored.kept.artifact_id if handles.parse_name(spelling) is None else stored.kept.name
            yield stored, self._describe_end(stored.kept)

    @contextmanager
    def _open_unfinished(self, label: ShelfLabel, shelf: Shelf, change: JobChanged) -> Generator[tuple[StoredOutput, str]]:
        redactors = self.archive.find_redactors(change.tool, change.server)
        try:
            reader = RunningReader(shelf.open(change.id), redactors.shown)
        except UnknownHandle:
            reader = BytesReader(b"")
        asked_ms, size = handles.created_ms(change.id), reader.size
        note = wording.so_far((now_ms() - asked_ms) / 1000, size) if label.live else wording.interrupted(size)
        kept = Kept(label.session, change.id, change.tool, "background", Size(size, 0, 0, 0), "", asked_ms)
        with StoredOutput(kept, reader, redactors=redactors) as stored:
            yield stored, note

    def _unfinished(self, spelling: str) -> Iterator[tuple[ShelfLabel, Shelf, JobChanged]]:
        """Find the last known state of a background command that is still running: its output has no name yet."""
        if handles.parse_name(spelling) is not None:
            return
        session, file = handles.parse(spelling)
        for store in self.archive.stores:
            for label in list_shelves(store, FAMILY):
                if label.name != FAMILY and session in (None, label.session):
                    with suppress(HandleError, StoreError), closing(store.read_shelf(label.session)) as shelf:
                        lines = (line for line in shelf.journal() if file.encode() in line)
                        if change := find_last_change(events.decode_events(lines), file):
                            yield label, shelf, change

    def _describe_end(self, kept: Kept) -> str:
        for store in self.archive.stores if kept.reason == "background" else ():
            with suppress(UnknownHandle), closing(store.read_shelf(kept.session)) as shelf:
                for event in events.decode_events(shelf.journal()):
                    if isinstance(event, CommandEnded) and event.id == kept.id:
                        return wording.ended(event.code)
        return ""


class PartRequest(Struct, frozen=True, kw_only=True):
    """Which part of an output to print: at most one of the first four fields, or its beginning if none is given."""

    lines: str | None = None
    bytes: str | None = None
    grep: str | None = None
    query: str | None = None
    context: int = 0
    ignore_case: bool = False
    start: int = 0


def read_part(stored: StoredOutput, wanted: PartRequest, bound: Bound) -> tuple[Page, bool]:
    """The part to print, and whether anything was found."""
    if not stored.reader.size:
        return Page(wording.EMPTY, data="", notes=(wording.EMPTY,)), wanted.grep is None and wanted.query is None
    found = True

    def read(bound: Bound) -> Page:
        nonlocal found
        if wanted.grep is not None:
            page, found = _grep(stored, wanted.grep, wanted, bound)
            return page
        page = _read(stored, wanted, bound)
        found = wanted.query is None or page.data not in _NOTHING
        return page

    return pages.fetch_page(stored, bound, read), found


def _read(stored: StoredOutput, wanted: PartRequest, bound: Bound) -> Page:
    if (expression := wanted.query) is not None:
        return pages.query_page(stored, expression, wanted.start, bound, lambda at: _spell(stored, "--query", expression, at=at))
    is_binary = stored.kept.media == "binary"
    if wanted.bytes is not None:
        first, last = parse_range("--bytes", wanted.bytes)
        if is_binary:
            return pages.base64_page(stored, first, last + 1, bound, _spell_range)
        return pages.passage_page(
            stored, bound, lambda bound: reading.bytes_range(stored.reader, stored.view, first, last + 1, bound), _spell_range
        )
    lines = (1, None) if wanted.lines is None else parse_range("--lines", wanted.lines)
    if not is_binary:
        return pages.passage_page(
            stored, bound, lambda bound: reading.lines(stored.reader, stored.view, *lines, bound), _spell_range
        )
    try:
        return pages.decoded_page(stored, lines, bound, _spell_range, lambda at: _spell(stored, "--grep", ".", at=at))
    except NotText:
        return pages.binary_page(stored, (wording.COMMAND,))


def _grep(stored: StoredOutput, pattern: str, wanted: PartRequest, bound: Bound) -> tuple[Page, bool]:
    if not pattern:
        raise BadRequest("--grep needs a pattern.")
    given = ["--context", str(wanted.context)] if wanted.context else []
    given += ["--ignore-case"] if wanted.ignore_case else []
    options = {"context": wanted.context, "ignore_case": wanted.ignore_case, "start_byte": wanted.start}
    return pages.grep_page(stored, pattern, bound, lambda at: _spell(stored, "--grep", pattern, *given, at=at), **options)


def _spell_range(stored: StoredOutput, range: Range) -> str:
    if range.unit == "lines":
        return _spell(stored, "--lines", f"{range.start}-{range.end}")
    start, end = stored.view.char_span(range.start, range.end) if range.unit == "chars" else (range.start, range.end)
    return _spell(stored, "--bytes", f"{start}-{end - 1}")


def _spell(stored: StoredOutput, *options: str, at: int = 0) -> str:
    return wording.spell_get(stored.shown_id, *options, *(["--from", str(at)] if at else []))
