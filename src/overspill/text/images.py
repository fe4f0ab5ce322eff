"""Recognises images by their first bytes, not by a name or media type."""

from __future__ import annotations

import base64
import binascii

from msgspec import Struct

from overspill.text.humanize import format_size
from overspill.text.regex import regex

BASE64_STARTS = ("iVBORw0KGgo", "/9j/", "R0lGODdh", "R0lGODlh", "UklGR")
"""The beginning of a PNG, JPEG, GIF or WebP in base64."""
_DATA_URL = regex(r"(?ai)data:[\w.+/-]{0,100};base64,")
_MIN_CHARS = 48  # in base64; every image is larger
_SIZES_WITHIN_BYTES = 64 * 1024  # where to look for the size of a JPEG, which comes after its metadata
_NO_FRAME = frozenset({0xC4, 0xC8, 0xCC})  # JPEG markers in the range of those with the image's size


class Image(Struct, frozen=True):
    media_type: str
    width: int
    height: int
    """The width and the height are 0 if the first bytes do not contain them."""
    data: bytes

    @property
    def description(self) -> str:
        """`image/png 1280×720, 43 KB`"""
        size = f" {self.width}×{self.height}" if self.width and self.height else ""
        return f"{self.media_type}{size}, {format_size(len(self.data))}"


def decode_image(text: str) -> Image | None:
    """The image in a string that is entirely base64 or a data URL; None for anything else."""
    if found := _DATA_URL.match(text, 0, 128):
        text = text[found.end() :]
    if len(text) < _MIN_CHARS or not text.startswith(BASE64_STARTS):
        return None
    try:
        return identify_image(base64.b64decode("".join(text.split()), validate=True))
    except (binascii.Error, ValueError):
        return None


def identify_image(data: bytes) -> Image | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return Image("image/png", _number(data[16:20]), _number(data[20:24]), data)
    if data.startswith((b"GIF87a", b"GIF89a")):
        return Image("image/gif", _number(data[6:8][::-1]), _number(data[8:10][::-1]), data)
    if data.startswith(b"\xff\xd8\xff") and data[3:4] >= b"\xc0":  # a marker, not text that begins with /9j/
        return Image("image/jpeg", *_jpeg_size(data[:_SIZES_WITHIN_BYTES]), data)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return Image("image/webp", *_webp_size(data[:30]), data)
    return None


def _jpeg_size(head: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            return _number(head[at + 7 : at + 9]), _number(head[at + 5 : at + 7])
        at += 2 + max(2, _number(head[at + 2 : at + 4]))
    return 0, 0


def _webp_size(head: bytes) -> tuple[int, int]:
    if head[12:16] == b"VP8X":
        return _number(head[24:27][::-1]) + 1, _number(head[27:30][::-1]) + 1
    if head[12:16] == b"VP8L":
        bits = _number(head[21:25][::-1])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if head[12:16] == b"VP8 ":
        return _number(head[26:28][::-1]) & 0x3FFF, _number(head[28:30][::-1]) & 0x3FFF
    return 0, 0


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")
