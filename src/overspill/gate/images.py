"""Images, audio and binary resources in a tool's result, and images inside text: base64 in JSON fields, or data URLs."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, TypeAlias, cast

import msgspec

from overspill.errors import StoreError
from overspill.gate.collect import field
from overspill.reading.query.pointer import append_token
from overspill.store.spool import SealedOutput
from overspill.text import encoding
from overspill.text.humanize import one_line
from overspill.text.images import BASE64_STARTS, Image, decode_image
from overspill.text.patterns import compile_pattern
from overspill.text.regex import regex
from overspill.types import Block, Kept
from overspill.wording import replies as wording

MAX_IMAGES = 10
"""How many images of one output to store and list. Further images are only counted."""
_DATA_URL = regex(r"(?a)data:image/[\w.+-]{1,50};base64,[A-Za-z0-9+/]+={0,2}")
_STARTS = ("data:", "DATA:", *BASE64_STARTS)
_URL_MARK = compile_pattern(b"data:image/", literal=True)  # RE2 finds what is rare in a quarter of the time that `in` takes
_MARKS = tuple(compile_pattern(mark, literal=True) for mark in (b"iVBORw0KGgo", b"/9j", b"R0lGOD", b"UklGR"))
"""For JSON, in which a slash may be escaped."""
_MAX_LEADING_BLANKS = 1000
_MAX_POINTER_CHARS = 100
_PLAIN_POINTER = regex(r"(?a)(?:/[\w~.$@:-]+)+")  # others could be mistaken for our own words

_Path: TypeAlias = "tuple[_Path, str | int] | None"
"""The path to a value, linked from its end. As a string, each path would repeat all keys above it."""
SealedKept: TypeAlias = tuple[Kept, SealedOutput]
StoreBlob: TypeAlias = Callable[[bytes], SealedKept]


def describe_blob(block: Block) -> str:
    """A blob's type and media type: `Image image/png`."""
    resource = field(block, "resource") or block
    media_type = field(resource, "mimeType") or field(resource, "mime_type") or ""
    return one_line(f"{str(field(block, 'type')).capitalize()} {media_type}")


def blob_data(block: Block) -> str:
    """The base64 data of an image, of audio, of an embedded resource, or of a block of an unknown type."""
    data = field(block, "data") or field(field(block, "resource"), "blob")
    return data if isinstance(data, str) else ""


def blob_size(block: Block) -> int:
    return len(blob_data(block)) * 3 // 4


def decode_blob(block: Block) -> bytes:
    data = blob_data(block)
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:  # not base64 after all: keep its characters
        return encoding.encode(data)


def describe_images(text: str, of: Kept, store: StoreBlob | None) -> tuple[list[SealedKept], list[str]]:
    """The stored images, and a line about each image. `store` stores an image as a blob. An image that cannot be stored is still
    in its output. Without `store`, describes only images with a pointer."""
    blobs, lines = list[SealedKept](), list[str]()
    images = [(image, pointer) for image, pointer in find_images(text) if store or pointer]
    for image, pointer in images[:MAX_IMAGES]:
        try:
            blobs.extend([store(image.data)] if store else ())
        except StoreError:
            if not pointer:
                continue
        lines.append(wording.image(image.description, f"{of.name}#{pointer}" if pointer else blobs[-1][0].name))
    if len(images) > MAX_IMAGES:
        lines.append(wording.more_images(len(images) - MAX_IMAGES))
    return blobs, lines


def find_images(text: str) -> list[tuple[Image, str]]:
    """Each image with its JSON pointer, empty if it has no plain one. Linear time, and quick for text without images."""
    may_be_json = text[:_MAX_LEADING_BLANKS].lstrip().startswith(("{", "[", '"'))
    data = encoding.encode(text)
    if not any(mark.search(data) for mark in (_MARKS if may_be_json else (_URL_MARK,))):
        return []
    return [(image, _spell(path)) for path, value in _strings(text) if (image := decode_image(value)) is not None]


def _strings(text: str) -> Iterator[tuple[_Path, str]]:
    """The strings that may be images, in the order of the text."""
    try:
        root = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        yield from ((None, found[0]) for found in _DATA_URL.finditer(text))
        return
    waiting: list[tuple[_Path, Any]] = [(None, root)] if _is_worth_a_look(root) else []
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            yield path, value
            continue
        members = cast("dict[str, Any]", value).items() if isinstance(value, dict) else enumerate(cast("list[Any]", value))
        found: list[tuple[_Path, Any]] = [((path, key), member) for key, member in members if _is_worth_a_look(member)]
        waiting.extend(reversed(found))


def _is_worth_a_look(value: object) -> bool:
    return value.startswith(_STARTS) if isinstance(value, str) else isinstance(value, dict | list)


def _spell(path: _Path) -> str:
    tokens: list[str | int] = []
    while path is not None and len(tokens) <= _MAX_POINTER_CHARS:
        path, token = path
        tokens.append(token)
    pointer = reduce(append_token, reversed(tokens), "") if path is None else ""
    return pointer if len(pointer) <= _MAX_POINTER_CHARS and _PLAIN_POINTER.fullmatch(pointer) else ""
