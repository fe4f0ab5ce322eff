"""Mode `raw` of an image: one that is stored, or one inside a stored JSON text, as `out_3f7k9q#/screenshot`."""

from __future__ import annotations

import base64

from overspill.errors import BadRequest
from overspill.reading.query import lookup
from overspill.reading.query.pointer import is_pointer
from overspill.retrieval.definitions import GetToolOutput
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.pages import Page
from overspill.text.humanize import one_line
from overspill.text.images import Image, decode_image, identify_image
from overspill.wording import replies as wording
from overspill.wording.names import tool_name


def output_id(id: str) -> str:
    """The id without the pointer to an image in the output."""
    return id.partition("#")[0]


def read_image(stored: StoredOutput, asked: GetToolOutput, max_bytes: int) -> Page | None:
    """None if the call is about something else, or about a stored image of more than `max_bytes`. Blocks."""
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
            f'{shown} is no image. Call {tool_name("get_tool_output")}(id="{stored.shown_id}", mode="query", query="{shown}").'
        )
    if len(image.data) > max_bytes:
        raise BadRequest(f"The image ({image.description}) is larger than maxInlineBlob, {max_bytes:,} bytes, and is not shown.")
    return image


def _image_page(stored: StoredOutput, id: str, image: Image) -> Page:
    block = {"type": "image", "data": base64.b64encode(image.data).decode(), "mimeType": image.media_type}
    return Page(wording.image(image.description, one_line(id)), stored.kept.id, blocks=[block])
