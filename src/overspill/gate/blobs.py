"""Images, audio and binary resources in a tool's result."""

from __future__ import annotations

import base64
import binascii

from overspill.gate.collect import field
from overspill.text import encoding
from overspill.text.humanize import one_line
from overspill.types import Block


def describe_blob(block: Block) -> str:
    """Its type and media type: `Image image/png`."""
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
