"""Limits the cost of decoding, even if the bytes claim to be small."""

from __future__ import annotations

import time

from msgspec import Struct

from overspill.store.readers import BytesReader
from overspill.text.humanize import format_size

MAX_WINDOW_LOG = 27
MAX_WINDOW_BYTES = 1 << MAX_WINDOW_LOG
"""The memory for a decompressor. Every preset of `xz` and `zstd` needs less; `--long` and huge dictionaries need more."""


class Limits(Struct, frozen=True):
    bytes: int = 256 << 20
    """The most bytes of text: the built-in engine searches no more of one output."""
    ratio: int = 200
    """Bytes out per byte in. Logs shrink to a tenth, very regular ones to a hundredth; only bombs shrink much further."""
    unchecked_ratio_bytes: int = 16 << 20
    """Up to this output size, the ratio is not checked."""
    layers: int = 4
    """How deep to follow compression inside compression."""
    seconds: float = 30.0
    """The limit on processor time in total, except for the pages of a PDF."""
    pdf_pages: int = 5_000
    pdf_seconds: int = 20
    """The limit on processor time for a PDF. A page takes one or two hundredths of a second."""


class Layer(Struct, frozen=True):
    """The content of a layer of compression or encoding."""

    reader: BytesReader
    stopped: str = ""
    """Where and why decoding stopped before the end."""
    remark: str = ""


class Allowance:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._started = time.thread_time()

    def find_excess(self, read: int, decoded: int) -> str:
        """The reason to stop, as the end of a sentence; empty to continue."""
        limits = self.limits
        if decoded >= limits.bytes:
            return f"no more than {format_size(limits.bytes)} are decoded"
        if decoded > limits.unchecked_ratio_bytes and decoded > limits.ratio * read:
            return f"it is more than {limits.ratio} times as large as what it is compressed to"
        if time.thread_time() - self._started > limits.seconds:
            return f"it took more than {limits.seconds:g} seconds"
        return ""
