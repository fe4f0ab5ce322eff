"""Moves records that only repeat a better one behind all others: pages have each title several times."""

from __future__ import annotations

from overspill.lexical.boost import Order
from overspill.lexical.index import Index

_MAX_COMPARED_RECORDS = 300
_MAX_COMPARED_BYTES = 2_000
"""A longer record counts as one that repeats nothing."""
_SIGNS = bytes(byte for byte in range(128) if not chr(byte).isalnum())


def move_repeats(index: Index, order: Order) -> Order:
    """Records are alike if their letters and digits are."""
    outline, signs = index.outline, _SIGNS + index.fill
    said: set[bytes] = set()
    new: Order = []
    repeated: Order = []
    for record, score in order[:_MAX_COMPARED_RECORDS]:
        start, end = outline.starts[record], outline.ends[record]
        words = bytes(index.text[start:end]).translate(None, signs).lower() if end - start <= _MAX_COMPARED_BYTES else b""
        (repeated if words in said else new).append((record, score))
        if words:
            said.add(words)
    return [*new, *repeated, *order[_MAX_COMPARED_RECORDS:]]
