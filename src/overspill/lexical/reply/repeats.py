"""Finds records that say nothing new: pages repeat their titles, and programs print the same line over and over."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Container, Iterator
from itertools import pairwise

from msgspec.structs import replace

from overspill.lexical.boost import Order, Step
from overspill.lexical.index import Index

_MAX_COMPARED_RECORDS = 300
_MAX_COUNTED_RECORDS = 5_000
_MAX_COMPARED_BYTES = 2_000
"""A longer record never counts as a repetition."""
_MIN_NOISE_TIMES = 5
"""A line that a program repeats this often, with different numbers, does not explain anything."""
_SIGNS = bytes(byte for byte in range(128) if not chr(byte).isalnum())
_DIGITS = string.digits.encode()


def move_repeats(index: Index, order: Order) -> Order:
    """Moves records that only repeat a better one to the end. Records repeat each other if their letters and digits are equal."""
    said: set[bytes] = set()
    new: Order = []
    repeated: Order = []
    compared = order[:_MAX_COMPARED_RECORDS]
    for pair, words in zip(compared, _read_words(index, [record for record, _ in compared], _SIGNS), strict=True):
        (repeated if words in said else new).append(pair)
        if words:
            said.add(words)
    return [*new, *repeated, *order[_MAX_COMPARED_RECORDS:]]


def leave_out_noise(index: Index, steps: tuple[Step, ...], matches: Container[int], telling: Container[int]) -> tuple[Step, ...]:
    """Drops lines that a program writes over and over, one after the other, unless they are `telling` or nothing else is left.
    A matching line is noise only if as many others like it match too, because its number may be the answer."""
    if not index.traits.is_program_output:
        return steps
    others = list(dict.fromkeys(record for step in steps for record, _ in step.order if record not in telling))
    others = others[:_MAX_COUNTED_RECORDS]
    read = _read_words(index, others, _SIGNS + _DIGITS)
    words = {record: (said, record in matches) for record, said in zip(others, read, strict=True)}
    times = Counter(words.values())
    frequent = {record for record, said in words.items() if said[0] and times[said] >= _MIN_NOISE_TIMES}
    noise: set[int] = set()
    for record in frequent:  # noise if three in a row say the same
        near = [words.get(record + step) == words[record] for step in (-2, -1, 1, 2)]
        if any(one and other for one, other in pairwise(near)):
            noise.add(record)
    left = tuple(replace(step, order=[pair for pair in step.order if pair[0] not in noise]) for step in steps)
    return left if noise and any(step.order for step in left) else steps


def _read_words(index: Index, records: list[int], signs: bytes) -> Iterator[bytes]:
    """The words to compare in each record; none if it is too long."""
    text, ignored = index.text, signs + index.fill
    spans = ((index.outline.starts[record], index.outline.ends[record]) for record in records)
    return (
        bytes(text[start:end]).translate(None, ignored).lower() if end - start <= _MAX_COMPARED_BYTES else b""
        for start, end in spans
    )
