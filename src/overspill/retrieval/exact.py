"""What `get_artifact` and `get_tool_output` answer without a model."""

from __future__ import annotations

import json
from typing import assert_never

from msgspec.structs import replace

from overspill import reading
from overspill.errors import BadRequest, NotText
from overspill.reading import Bound, Range
from overspill.retrieval.definitions import GetArtifact, GetToolOutput, OutputMode, parse_range
from overspill.retrieval.modes import ExactMode
from overspill.retrieval.modes.grep import GREP
from overspill.retrieval.modes.query import QUERY, query_page
from overspill.retrieval.modes.slice import RAW, SLICE
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.pages import Page, base64_page, binary_page, passage_page
from overspill.wording.names import tool_name


def exact_mode(mode: OutputMode) -> ExactMode | None:
    """None for a mode that asks a model or needs more than one output. A mode that is missing here fails the type checker."""
    match mode:
        case "raw":
            return RAW
        case "slice":
            return SLICE
        case "grep":
            return GREP
        case "query":
            return QUERY
        case "extract" | "sql":
            return None
        case _:
            assert_never(mode)


def read_output(mode: ExactMode, stored: StoredOutput, asked: GetToolOutput, bound: Bound) -> Page:
    if stored.kept.media == "binary" and not mode.reads_binary:
        return binary_page(stored, ("get_tool_output",))
    try:
        return mode.read(stored, asked, bound)
    except NotText as error:
        page = binary_page(stored, ("get_tool_output",))
        return replace(page, text=f"{error}\n{page.text}", is_error=True)


def read_artifact(stored: StoredOutput, asked: GetArtifact, bound: Bound) -> Page:
    """Lines, bytes, a query, or everything from the beginning."""
    ways = [name for name in ("lines", "bytes", "query") if getattr(asked, name) is not None]
    if asked.start_line is not None or asked.end_line is not None:
        ways.insert(0, "start_line or end_line")
    if len(ways) > 1:
        raise BadRequest(f"{tool_name('get_artifact')} got {' and '.join(ways)}. Give one of them.")
    if asked.query is not None:
        return _query_artifact(stored, asked.query, asked.from_, bound)
    if asked.bytes is not None:
        first, last = parse_range("bytes", asked.bytes)
        return _read_artifact_bytes(stored, first, last + 1, bound)
    if stored.kept.media == "binary":
        return binary_page(stored, ("get_artifact",))
    reader, view = stored.reader, stored.view
    if asked.lines is not None or asked.start_line is not None or asked.end_line is not None:
        first, last = 1 if asked.start_line is None else asked.start_line, asked.end_line
        if asked.lines is not None:
            first, last = parse_range("lines", asked.lines)
        return passage_page(stored, bound, lambda bound: reading.lines(reader, view, first, last, bound), _spell_artifact)
    return passage_page(stored, bound, lambda bound: reading.raw(reader, view, bound), _spell_artifact)


def _query_artifact(stored: StoredOutput, expression: str, start: int, bound: Bound) -> Page:
    def spell(start: int) -> str:
        return f'{tool_name("get_artifact")}(id="{stored.shown_id}", query={json.dumps(expression)}, from={start})'

    return query_page(stored, expression, start, bound, spell)


def _read_artifact_bytes(stored: StoredOutput, first: int, end: int, bound: Bound) -> Page:
    if stored.kept.media == "binary":
        return base64_page(stored, first, end, bound, _spell_artifact)
    reader, view = stored.reader, stored.view
    return passage_page(stored, bound, lambda bound: reading.bytes_range(reader, view, first, end, bound), _spell_artifact)


def _spell_artifact(stored: StoredOutput, range: Range) -> str:
    last = range.end if range.unit == "lines" else range.end - 1
    unit = "bytes" if range.unit == "chars" else range.unit
    start, end = stored.view.char_span(range.start, range.end) if range.unit == "chars" else (range.start, last + 1)
    return f'{tool_name("get_artifact")}(id="{stored.shown_id}", {unit}="{start}-{end - 1}")'
