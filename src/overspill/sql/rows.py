"""Finds a row of a table in its text by its `_row`, to cite it."""

from __future__ import annotations

from mmap import mmap
from typing import TypeAlias

import msgspec

from overspill.errors import BadRequest
from overspill.lexical.kinds import find_kind
from overspill.reading.query.pointer import split_pointer
from overspill.tables.json_tables import RepeatedKeys, locate_values
from overspill.tables.json_text import begin_json, find_end, mask_literal
from overspill.tables.rows import read_tables
from overspill.tables.table import Span, Unreadable
from overspill.text.lines import iterate_lines
from overspill.text.regex import regex

Text: TypeAlias = bytes | mmap
_ELEMENT = regex(rb"[^\s,]")
_NUMBER = regex(r"[0-9]{1,18}")


def find_row(text: Text, row: int | str) -> Span:
    """The span of a row. Raises BadRequest if the row does not exist or its `_row` is not a place in the text."""
    if isinstance(row, str):
        return _find_value(text, row)
    layout = find_kind(text).traits.layout
    if layout == "page":
        raise BadRequest("The rows of a table in HTML are only numbered. Search for one of its cells with grep.")
    try:
        if layout == "documents":
            places = enumerate(iterate_lines(text, 0, len(text)), 1)
        else:
            places = ((each.where, each.span) for _, each in read_tables(text, layout))
        start, end = next((span for where, span in places if where == row), (-1, -1))
    except Unreadable as error:
        raise BadRequest(f"The rows cannot be read: {error}") from None
    if start < 0:
        raise _no_row(row)
    return start, start + len(bytes(text[start:end]).rstrip(b"\r\n"))


def _find_value(text: Text, pointer: str) -> Span:
    """The span of the value at a pointer. For a value inside a string that contains JSON, the span of the string."""
    tokens = split_pointer(pointer)
    try:
        text, start, end = _open_document(text, tokens)
    except LookupError:
        raise _no_row(pointer) from None
    except RecursionError as error:
        raise _not_json(error) from None
    for token in tokens:
        if text[start : start + 1] == b'"':
            break
        try:
            places = locate_values(memoryview(text)[start:end])
            first, last = next(((first, last) for name, first, last in places if name == token), (-1, -1))
        except (msgspec.DecodeError, RecursionError) as error:
            raise _not_json(error) from None
        except RepeatedKeys:
            raise BadRequest("An object around that row has a key twice, so its place is unknown.") from None
        if first < 0:
            raise _no_row(pointer)
        start, end = start + first, start + last
    return start, start + len(bytes(text[start:end]).rstrip())


def _open_document(text: Text, tokens: list[str]) -> tuple[Text, int, int]:
    """Opens the document; of several, the one that the first token names, or raises LookupError. Masking Python's literals
    keeps all positions."""
    start, is_literal = begin_json(text)
    if is_literal:
        text = bytes(text[:start]) + mask_literal(bytes(text[start:]))
    start = _skip(text, start)
    end = start + (find_end(memoryview(text)[start:]) or len(text))
    if end < len(text) and tokens and find_end(memoryview(text)[end:]):
        number = tokens.pop(0)
        if not _NUMBER.fullmatch(number):
            raise LookupError(number)
        for _ in range(int(number)):
            start = _skip(text, end)
            end = start + find_end(memoryview(text)[start:])
            if start == end:
                raise LookupError(number)
    return text, start, end


def _skip(text: Text, position: int) -> int:
    """Where the next element begins."""
    found = _ELEMENT.search(text, position)
    return found.start() if found else position


def _not_json(error: Exception) -> BadRequest:
    return BadRequest(f"The output is not JSON: {error}.")


def _no_row(row: int | str) -> BadRequest:
    return BadRequest(f"There is no row {row!r}.")
