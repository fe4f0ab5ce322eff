"""Replaces secrets in outputs before they are stored."""

from __future__ import annotations

from overspill.redaction.redactor import Redactor, Replacement, apply

_BLOCK_BYTES = 1 << 20
_MARGIN_BYTES = 128 << 10
"""How much to hold back, so that even the largest known value in its longest encoding is found across two pieces."""


class Inlet:
    """Takes bytes as they arrive, and returns them with marks, slightly later."""

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
            end = self._held.rfind(b"\n", end // 2, end) + 1 or end  # at the end of a line, outside JSON strings
        held = bytes(self._held)
        found = [each for each in self._redactor.find(held) if each.start < end]
        end = max([end, *(each.end for each in found[-1:])])
        del self._held[:end]
        self.found += found
        return apply(held[:end], found)
