"""One bounded answer of `overspill get`: a part of a stored output, and the command that prints the next part."""

from __future__ import annotations

from msgspec import Struct

from overspill import reading
from overspill.errors import BadRequest, NotText
from overspill.reading import Bound, Range
from overspill.retrieval.definitions import GetToolOutput, parse_range
from overspill.retrieval.modes.grep import grep_page
from overspill.retrieval.modes.query import query_page
from overspill.retrieval.modes.slice import decoded_page
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.pages import Page, base64_page, binary_page, finished_page, passage_page
from overspill.wording.shell import COMMAND, EMPTY, spell_get

_NOTHING = ("null", "[]")
"""What an expression gives that matches nothing. A stored null or empty list cannot be told from it."""


class Wanted(Struct, frozen=True, kw_only=True):
    """Which part of an output: at most one of the first four. None of them: its beginning."""

    lines: str | None = None
    bytes: str | None = None
    grep: str | None = None
    query: str | None = None
    context: int = 0
    ignore_case: bool = False
    start: int = 0


class Part(Struct, frozen=True):
    """`text` as it is printed: `data`, the stored text in it, and below it `notes`, which are ours."""

    text: str
    is_found: bool = True
    data: str = ""
    notes: tuple[str, ...] = ()


def read_part(stored: StoredOutput, wanted: Wanted, bound: Bound) -> Part:
    """Blocks."""
    if not stored.reader.size:
        return Part(EMPTY, is_found=wanted.grep is None and wanted.query is None, notes=(EMPTY,))
    found = True

    def read(bound: Bound) -> Page:
        nonlocal found
        if wanted.grep is not None:
            page, found = _grep(stored, wanted, bound)
            return page
        page = _read(stored, wanted, bound)
        found = wanted.query is None or page.data not in _NOTHING
        return page

    page = finished_page(stored, bound, read)
    return Part(page.text, found, page.text if page.data is None else page.data, page.notes)


def _read(stored: StoredOutput, wanted: Wanted, bound: Bound) -> Page:
    if wanted.query is not None:
        expression = wanted.query
        return query_page(stored, expression, wanted.start, bound, lambda at: _spell(stored, "--query", expression, at=at))
    is_binary = stored.kept.media == "binary"
    if wanted.bytes is not None:
        first, last = parse_range("--bytes", wanted.bytes)
        if is_binary:
            return base64_page(stored, first, last + 1, bound, _spell_range)
        return passage_page(
            stored, bound, lambda bound: reading.bytes_range(stored.reader, stored.view, first, last + 1, bound), _spell_range
        )
    first, last = _parse_lines(wanted)
    if is_binary:
        try:
            return decoded_page(stored, first, last, bound, _spell_decoded)
        except NotText:
            return binary_page(stored, (COMMAND,))
    return passage_page(stored, bound, lambda bound: reading.lines(stored.reader, stored.view, first, last, bound), _spell_range)


def _grep(stored: StoredOutput, wanted: Wanted, bound: Bound) -> tuple[Page, bool]:
    pattern = wanted.grep
    if not pattern:
        raise BadRequest("--grep needs a pattern.")
    options = ["--context", str(wanted.context)] if wanted.context else []
    options += ["--ignore-case"] if wanted.ignore_case else []
    asked = GetToolOutput("", "grep", pattern=pattern, context=wanted.context, ignore_case=wanted.ignore_case, from_=wanted.start)
    return grep_page(stored, asked, bound, lambda at: _spell(stored, "--grep", pattern, *options, at=at))


def _parse_lines(wanted: Wanted) -> tuple[int, int | None]:
    return (1, None) if wanted.lines is None else parse_range("--lines", wanted.lines)


def _spell_range(stored: StoredOutput, range: Range) -> str:
    if range.unit == "lines":
        return _spell(stored, "--lines", f"{range.start}-{range.end}")
    start, end = stored.view.char_span(range.start, range.end) if range.unit == "chars" else (range.start, range.end)
    return _spell(stored, "--bytes", f"{start}-{end - 1}")


def _spell_decoded(stored: StoredOutput, range: Range) -> str:
    """A range of bytes would be one of stored bytes."""
    return _spell_range(stored, range) if range.unit == "lines" else _spell(stored, "--grep", ".", at=range.start)


def _spell(stored: StoredOutput, *options: str, at: int = 0) -> str:
    return spell_get(stored.shown_id, *options, *(["--from", str(at)] if at else []))
