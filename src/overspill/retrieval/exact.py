"""What `get_artifact` and `get_tool_output` answer without a model."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from overspill import reading
from overspill.errors import BadRequest, NotText
from overspill.reading import Bound, Range
from overspill.reading.query import lookup
from overspill.reading.query.pointer import is_pointer
from overspill.retrieval import pages
from overspill.retrieval.definitions import GetArtifact, GetToolOutput, Slice, parse_range
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.pages import Page
from overspill.text.humanize import one_line
from overspill.text.images import Image, decode_image, identify_image
from overspill.wording import replies as wording
from overspill.wording import retrieval
from overspill.wording.names import tool_name

READS_RUNNING = ("slice", "grep")
"""The modes that can read what a running tool has produced so far."""


def read_output(stored: StoredOutput, asked: GetToolOutput, bound: Bound) -> Page:
    """The answer in modes that need no model and no other output."""
    if stored.kept.media == "binary" and asked.mode == "raw":
        return pages.binary_page(stored, ("get_tool_output",))
    try:
        match asked.mode:
            case "slice":
                return _read_slice(stored, asked.slice or Slice(), bound)
            case "grep":
                return _grep(stored, asked, bound)
            case "query":
                if not asked.query:
                    raise BadRequest(retrieval.query_required("query"))
                spell = partial(_spell, stored, "get_tool_output", {"mode": "query", "query": asked.query})
                return pages.query_page(stored, asked.query, asked.from_, bound, spell)
            case _:
                return pages.passage_page(stored, bound, partial(reading.raw, stored.reader, stored.view), _spell_slice)
    except NotText as error:
        page = pages.binary_page(stored, ("get_tool_output",))
        return replace(page, text=f"{error}\n{page.text}", is_error=True)


def _read_slice(stored: StoredOutput, part: Slice, bound: Bound) -> Page:
    """Characters, lines, or the surroundings of an anchor. If the output is not text: bytes, or lines of its text."""
    # With an anchor, models also write a meaningless start of 0.
    nothing = (None,) if part.lines is not None else (None, 0)
    ways = [name for name in ("lines", "anchor", "start") if getattr(part, name) not in nothing]
    if len(ways) > 1:
        raise BadRequest(f"slice has {' and '.join(ways)}. Give one of them: lines, anchor or start.")
    source, is_binary = (stored.reader, stored.view), stored.kept.media == "binary"
    if is_binary and part.lines is not None:
        search = {"mode": "grep", "pattern": ".", "context": 0}
        inside = partial(_spell, stored, "get_tool_output", search)
        return pages.decoded_page(stored, parse_range("lines", part.lines), bound, _spell_slice, inside)
    if is_binary and part.start is None:
        return pages.binary_page(stored, ("get_tool_output",))
    if is_binary:
        first = part.start or 0
        end = stored.reader.size if part.length is None else first + part.length
        return pages.base64_page(stored, first, end, bound, _spell_slice)
    if part.lines is not None:
        fetch = partial(reading.lines, *source, *parse_range("lines", part.lines))
    elif part.anchor is None:
        fetch = partial(reading.chars, *source, part.start or 0, part.length)
    else:
        fetch = partial(reading.around, *source, part.anchor, window=part.window, match_index=part.match_index)
    return pages.passage_page(stored, bound, fetch, _spell_slice, located=part.anchor is not None and part.lines is None)


def _grep(stored: StoredOutput, asked: GetToolOutput, bound: Bound) -> Page:
    pattern = asked.pattern or asked.query
    if not pattern:
        raise BadRequest("Pattern required for grep mode.")
    way: dict[str, object] = {"mode": "grep", "pattern": pattern}
    way |= {"context": asked.context} if asked.context != GetToolOutput("", "grep").context else {}
    way |= {"ignore_case": True} if asked.ignore_case else {}
    spell = partial(_spell, stored, "get_tool_output", way)
    options = {"context": asked.context, "ignore_case": asked.ignore_case, "start_byte": asked.from_}
    return pages.grep_page(stored, pattern, bound, spell, **options)[0]


def read_artifact(stored: StoredOutput, asked: GetArtifact, bound: Bound) -> Page:
    """The answer of `get_artifact`: lines, bytes, the result of a query, or everything from the beginning."""
    ways = [name for name in ("lines", "bytes", "query") if getattr(asked, name) is not None]
    if asked.start_line is not None or asked.end_line is not None:
        ways.insert(0, "start_line or end_line")
    if len(ways) > 1:
        raise BadRequest(f"{tool_name('get_artifact')} got {' and '.join(ways)}. Give one of them.")
    source, is_binary = (stored.reader, stored.view), stored.kept.media == "binary"
    if asked.query is not None:
        spell = partial(_spell, stored, "get_artifact", {"query": asked.query})
        return pages.query_page(stored, asked.query, asked.from_, bound, spell)
    fetch = partial(reading.raw, *source)
    if asked.bytes is not None:
        first, last = parse_range("bytes", asked.bytes)
        if is_binary:
            return pages.base64_page(stored, first, last + 1, bound, _spell_artifact)
        fetch = partial(reading.bytes_range, *source, first, last + 1)
    elif is_binary:
        return pages.binary_page(stored, ("get_artifact",))
    elif ways:
        first, last = 1 if asked.start_line is None else asked.start_line, asked.end_line
        if asked.lines is not None:
            first, last = parse_range("lines", asked.lines)
        fetch = partial(reading.lines, *source, first, last)
    return pages.passage_page(stored, bound, fetch, _spell_artifact)


def _spell_slice(stored: StoredOutput, range: Range) -> str:
    part: dict[str, object] = {"lines": f"{range.start}-{range.end}"}
    if range.unit != "lines":
        start, end = range.start, range.end
        if range.unit == "bytes" and stored.kept.media != "binary":
            start, end = stored.view.char_at(stored.view.from_stored(start)), stored.view.char_at(stored.view.from_stored(end))
        part = {"start": start, "length": end - start}
    return _spell(stored, "get_tool_output", {"mode": "slice", "slice": part})


def _spell_artifact(stored: StoredOutput, range: Range) -> str:
    if range.unit == "lines":
        return _spell(stored, "get_artifact", {"lines": f"{range.start}-{range.end}"})
    start, end = range.start, range.end
    if range.unit == "chars":
        start, end = map(stored.view.to_stored, stored.view.char_span(start, end))
    return _spell(stored, "get_artifact", {"bytes": f"{start}-{end - 1}"})


def _spell(stored: StoredOutput, tool: str, arguments: Mapping[str, object], start: int | None = None) -> str:
    """A call, as a model would write it."""
    arguments = arguments if start is None else {**arguments, "from": start}
    written = ", ".join(f"{name}={json.dumps(value)}" for name, value in arguments.items())
    return f'{tool_name(tool)}(id="{stored.shown_id}", {written})'


def output_id(id: str) -> str:
    """The id without the pointer to an image in the output."""
    return id.partition("#")[0]


def read_image(stored: StoredOutput, asked: GetToolOutput, max_bytes: int) -> Page | None:
    """The stored image that the call asks for; None if it asks for something else or for more than `max_bytes`. Blocks."""
    pointer = asked.id.partition("#")[2].strip(" \t\r\n\"'`")
    if "#" in asked.id:
        return _image_page(stored, f"{stored.shown_id}#{pointer}", _image_at(stored, pointer, asked.mode, max_bytes))
    is_blob = stored.kept.media == "binary" and stored.reader.size <= max_bytes
    if asked.mode != "raw" or not is_blob or not stored.words.shows_images:  # a document's preset has no images in answers
        return None
    image = identify_image(stored.reader.read(0, stored.reader.size))
    return image and _image_page(stored, stored.shown_id, image)


def _image_at(stored: StoredOutput, pointer: str, mode: str, max_bytes: int) -> Image:
    if mode != "raw" or not is_pointer(pointer):
        raise BadRequest(f'An id with # is for mode raw, and ends with a JSON pointer. Use id="{stored.shown_id}" otherwise.')
    stored.check()
    value = lookup(stored.reader, pointer)
    image = decode_image(value) if isinstance(value, str) else None
    if image is None:
        shown = one_line(pointer)
        raise BadRequest(
            f"{shown} is not an image. Call {tool_name('get_tool_output')}"
            f'(id="{stored.shown_id}", mode="query", query="{shown}").'
        )
    if len(image.data) > max_bytes:
        raise BadRequest(f"The image ({image.description}) is larger than maxInlineBlob, {max_bytes:,} bytes, and is not shown.")
    return image


def _image_page(stored: StoredOutput, id: str, image: Image) -> Page:
    block = {"type": "image", "data": base64.b64encode(image.data).decode(), "mimeType": image.media_type}
    return Page(wording.image(image.description, one_line(id)), stored.kept.id, blocks=[block])
