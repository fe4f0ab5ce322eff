"""Finds where in a large output the terms of a question are, without cutting it."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from functools import lru_cache
from heapq import nlargest
from itertools import chain, islice

from msgspec import Struct

from overspill.lexical.kinds.kind import Traits
from overspill.lexical.outline import Source
from overspill.lexical.query import Term
from overspill.lexical.scan import MAX_COMMON_HITS, Finder, TermSamples
from overspill.lexical.visible import Visible
from overspill.lexical.weights import WEIGHTS

BLOCK_BYTES = 512
"""About a record: terms in one block are near each other."""
_MAX_BLOCKS = 2_000
"""The best blocks, from which parts are chosen."""
_MAX_SORTED_BLOCKS = 1 << 16
"""Sorting so many is faster than looking for the best; sorting more would take memory."""
_MAX_TAG_BYTES = 512
_MIN_BYTES_PER_HIT = 1_000
"""Terms that together occur more often hardly tell one part of a large output from another."""
_BITS = 64
"""Terms beyond this share a bit."""
_MAX_REMEMBERED_MASKS = 1 << 16


class Places(Struct, frozen=True):
    """Where to look, best first, and all blocks that have what is asked."""

    best: list[int]
    """Positions of blocks."""
    telling: array[int]
    """Numbers of the blocks that contain what is asked, in order."""
    is_cut: bool
    """Whether counting stopped early."""


def locate(source: Source, visible: Visible, every: tuple[Term, ...], samples: TermSamples, traits: Traits) -> Places:
    """In one pass, or in two if the first finds only words that phrase the request."""
    terms, everywhere = samples.drop_common_terms(every, _MIN_BYTES_PER_HIT)
    masks, is_cut = _scan(source, visible, terms, traits, MAX_COMMON_HITS if everywhere else None)
    met = _union(masks)
    if len(terms) < len(every) and not any(term.role != "wording" and met & _bit(number) for number, term in enumerate(terms)):
        left = tuple(term for term in every if term not in terms)
        rarest, _ = samples.drop_common_terms(tuple(term for term in left if term.telling) or left, _MIN_BYTES_PER_HIT)
        terms += rarest
        masks, is_cut = _scan(source, visible, terms, traits, MAX_COMMON_HITS)
    return _choose(masks, terms, is_cut)


def _bit(number: int) -> int:
    return 1 << min(number, _BITS - 1)


def _union(masks: array[int]) -> int:
    met = 0
    for mask in set(masks):
        met |= mask
    return met


def _scan(source: Source, visible: Visible, terms: tuple[Term, ...], traits: Traits, most: int | None) -> tuple[array[int], bool]:
    """Which terms each block has."""
    masks = array("Q", bytes(8 * (len(source) // BLOCK_BYTES + 1)))
    finder = Finder(terms, code=traits.is_code, raw=True)
    bits = [_bit(number) for number in range(len(terms))]
    is_markup = traits.is_markup
    hits = visible.find(finder, source) if terms else ()
    for start, _, term, _ in islice(hits, most):
        if not (is_markup and _is_in_tag(source, start)):
            masks[start // BLOCK_BYTES] |= bits[term]
    return masks, next(iter(hits), None) is not None


def _is_in_tag(source: Source, position: int) -> bool:
    first = max(0, position - _MAX_TAG_BYTES)
    return source.rfind(b"<", first, position) > source.rfind(b">", first, position)


def _choose(masks: array[int], terms: tuple[Term, ...], is_cut: bool) -> Places:
    times = Counter(masks)
    telling = sum({_bit(number) for number, term in enumerate(terms) if term.telling}) & _union(masks)
    worth = [_weigh(term, number, times, len(masks)) for number, term in enumerate(terms)]

    @lru_cache(_MAX_REMEMBERED_MASKS)
    def value(mask: int) -> float:
        return sum(worth[number] for number in range(len(terms)) if mask & _bit(number))

    @lru_cache(_MAX_REMEMBERED_MASKS)
    def score(mask: int, beside: int) -> float:
        return value(mask) + WEIGHTS.beside_block * value(beside & ~mask)

    around = zip(masks, chain((0,), masks), chain(islice(masks, 1, None), (0,)), strict=False)
    found = ((score(mask, before | after), -block) for block, (mask, before, after) in enumerate(around) if mask)
    few = list(islice(found, _MAX_SORTED_BLOCKS))
    is_all = len(few) < _MAX_SORTED_BLOCKS
    chosen = sorted(few, reverse=True)[:_MAX_BLOCKS] if is_all else nlargest(_MAX_BLOCKS, chain(few, found))
    best = [-block * BLOCK_BYTES for _, block in chosen]
    wanted = telling or -1
    return Places(best, array("q", (block for block, mask in enumerate(masks) if mask & wanted)), is_cut)


def _weigh(term: Term, number: int, times: Counter[int], total: int) -> float:
    holding = sum(count for mask, count in times.items() if mask & _bit(number))
    return term.weight * math.log(1 + (total - holding + 0.5) / (holding + 0.5))
