"""Finds a row of a table in its text by its `_row`, so that you can cite it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice
from mmap import mmap
from typing import TypeAlias
from xml.parsers import expat

import msgspec

from overspill.errors import BadRequest
from overspill.reading.query.pointer import split_pointer
from overspill.sql.tables.commits import split_commits
from overspill.sql.tables.delimited import find_short_heading, read_heading
from overspill.sql.tables.kind import find_kind
from overspill.sql.tables.logs import split_events
from overspill.sql.tables.table import Unreadable
from overspill.tables.delimited import Heading, iterate_rows
from overspill.tables.json_tables import BEFORE_VALUE, Elements, Members
from overspill.tables.json_text import ENDING_BYTES, HEAD_BYTES, find_end, find_start
from overspill.tables.lines import find_tables
from overspill.tables.literals import is_literal, mask_literal
from overspill.tables.table import Span

Text: TypeAlias = bytes | mmap
_XML_CHUNK_BYTES = 1 << 16
_RULE = re.compile(rb"(?m)^[ \t]*+\|?[ \t]*+:?-[-:| \t]*+\r?$")
"""Below the header of a table in Markdown, whose rows are lines."""
_START_TAG = re.compile(rb"<[^\s!?/<>]")
_BEFORE_ELEMENT = re.compile(rb"[\s,]*+")


def find_row(text: Text, row: int | str) -> Span:
    """Its bytes. Raises BadRequest if there is no such row, or if its `_row` does not say where it is."""
    if isinstance(row, str):
        return _find_value(text, row)
    match find_kind(text).traits.layout:
        case "rows":
            return _find_record(text, row)
        case "elements":
            return _find_element(text, row)
        case "page":
            raise BadRequest("The rows of a table in HTML are only numbered. Search for one of its cells with grep.")
        case "events":
            return _find_lines(text, row, lambda lines: next((event.count("\n") + 1 for _, event in split_events(lines)), 1))
        case "commits":
            return _find_lines(text, row, lambda lines: next((len(commit) for _, commit in split_commits(lines)), 1))
        case "aligned":
            start, end = _find_lines(text, row, lambda _: 1)
            for table in find_tables(text, 0, len(text)):
                if (place := bisect_left(table.starts, start)) < len(table) and table.starts[place] == start:
                    return start, start + len(bytes(text[start : table.ends[place]]).rstrip(b"\r\n"))
            return start, end
        case _ if not _RULE.search(text) and (heading := find_short_heading(text)):
            return _find_record(text, row, heading)
        case _:
            return _find_lines(text, row, lambda _: 1)


def _find_value(text: Text, pointer: str) -> Span:
    """A value inside a string that contains JSON is where that string is."""
    tokens = split_pointer(pointer)
    text, start, end = _open_document(text, tokens)
    for token in tokens:
        if text[start : start + 1] == b'"':
            break
        try:
            start, end = _step_into(text, start, end, token)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadRequest(f"The output is not JSON: {error}.") from None
        except LookupError:
            raise _no_row(pointer) from None
    return start, start + len(bytes(text[start:end]).rstrip())


def _open_document(text: Text, tokens: list[str]) -> tuple[Text, int, int]:
    """Of several documents, that which the first token names. Python's literals are masked, which keeps all places."""
    start = max(0, find_start(bytes(text[:HEAD_BYTES]), bytes(text[-ENDING_BYTES:])))
    if is_literal(bytes(text[start : start + HEAD_BYTES])):
        text = bytes(text[:start]) + mask_literal(bytes(text[start:]))
    start = _skip_to_element(text, start)
    end = start + (find_end(memoryview(text)[start:]) or len(text))
    if end < len(text) and tokens and find_end(memoryview(text)[end:]):
        for _ in range(int(tokens.pop(0))):
            start = _skip_to_element(text, end)
            end = start + find_end(memoryview(text)[start:])
    return text, start, end


def _step_into(text: Text, start: int, end: int, token: str) -> Span:
    """Values are as long as the decoder says, and follow each other, with nothing but keys and blanks between them."""
    raw = memoryview(text)[start:end]
    if text[start : start + 1] == b"[":
        values, wanted, skip = Elements.decode(raw), int(token) if token.isdecimal() else -1, _skip_to_element
    else:
        members = Members.decode(raw)
        values, wanted, skip = list(members.values()), list(members).index(token) if token in members else -1, _skip_to_value
    if not 0 <= wanted < len(values):
        raise LookupError
    position = start + 1
    for value in values[: wanted + 1]:
        start = skip(text, position)
        position = start + memoryview(value).nbytes
    if bytes(text[start:position]) != bytes(values[wanted]):
        raise BadRequest("An object around that row has a key twice, so its place cannot be told.")
    return start, position


def _skip_to_element(text: Text, position: int) -> int:
    found = _BEFORE_ELEMENT.match(text, position)
    return found.end() if found else position


def _skip_to_value(text: Text, position: int) -> int:
    found = BEFORE_VALUE.match(text, position)
    return found.end() if found else position


def _find_record(text: Text, row: int, heading: Heading | None = None) -> Span:
    try:
        heading = heading or read_heading(text)
    except Unreadable as error:
        raise BadRequest(f"The rows cannot be read: {error}") from None
    rows = iterate_rows(text, heading.format.mark, heading.first, len(text))
    start, end = next(islice(rows, row - 1, None), (0, 0)) if row > 0 else (0, 0)
    if not end:
        raise _no_row(row)
    return start, start + len(bytes(text[start:end]).rstrip(b"\r\n"))


def _find_element(text: Text, start: int) -> Span:
    """From the start tag at this byte to its end tag."""
    if start < 0 or not _START_TAG.match(text, start):  # and so no declaration, which could define entities
        raise _no_row(start)
    parser, depth, ended = expat.ParserCreate("utf-8"), 0, list[int]()

    def opened(*_: object) -> None:
        nonlocal depth
        depth += 1

    def closed(_: str) -> None:
        nonlocal depth
        depth -= 1
        if not depth and not ended:
            ended.append(start + parser.CurrentByteIndex)  # of the end tag, or behind a tag that is both

    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    try:
        for position in range(start, len(text), _XML_CHUNK_BYTES):
            parser.Parse(text[position : position + _XML_CHUNK_BYTES], False)
            if ended:
                break
    except expat.ExpatError as error:
        if not ended:  # an error behind the element is none of its own
            raise BadRequest(f"The element at byte {start:,} is not well-formed XML ({error}).") from None
    if not ended:
        raise _no_row(start)
    return start, text.find(b">", ended[0]) + 1 if text[ended[0] : ended[0] + 2] == b"</" else ended[0]


def _find_lines(text: Text, first: int, count_lines: Callable[[Iterator[str]], int]) -> Span:
    """`count_lines` says how many lines a row has, given the lines from its first on."""
    lines = _Lines(text)
    while lines.number < first and next(lines, None) is not None:
        pass
    if first < 1 or lines.number != first or lines.position >= len(text):
        raise _no_row(first)
    start = lines.position
    count = count_lines(line.rstrip("\r\n") for line in lines)
    lines = _Lines(text, start)
    for _ in range(count):
        next(lines, None)
    return start, start + len(bytes(text[start : lines.position]).rstrip(b"\r\n"))


class _Lines:
    """The lines of a text with their ends, and where the next one begins."""

    def __init__(self, text: Text, position: int = 0) -> None:
        self._text = text
        self.position = position
        self.number = 1

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self.position >= len(self._text):
            raise StopIteration
        end = self._text.find(b"\n", self.position) + 1 or len(self._text)
        line = bytes(self._text[self.position : end])
        self.position, self.number = end, self.number + 1
        return line.decode("utf-8", "replace")


def _no_row(row: int | str) -> BadRequest:
    return BadRequest(f"There is no row {row!r}.")
