"""Secrets in outputs that are being stored: replaced before the store gets them."""

from __future__ import annotations

from overspill.redaction.redactor import Redactor, Replacement, apply

_BLOCK_BYTES = 1 << 20
_MARGIN_BYTES = 128 << 10
"""Held back: a known value of the largest size in its longest encoding is found at any border."""


class Inlet:
    """Takes bytes as they come, and gives them back with marks, somewhat later."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = bytearray()
        self.found: list[Replacement] = []

    def __call__(self, data: bytes, is_end: bool) -> bytes:
        self._held += data
        end = len(self._held)
        if not is_end:
            if end < _BLOCK_BYTES + _MARGIN_BYTES:
                return b""
            end -= _MARGIN_BYTES
            end = self._held.rfind(b"\n", end // 2, end) + 1 or end  # at the end of a line, outside of JSON's strings
        held = bytes(self._held)
        found = [each for each in self._redactor.find(held) if each.start < end]
        end = max([end, *(each.end for each in found[-1:])])
        del self._held[:end]
        self.found += found
        return apply(held[:end], found)
