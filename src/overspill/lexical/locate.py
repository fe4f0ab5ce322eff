"""Finds where in a large output the terms of a question are, without cutting it."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from heapq import nlargest
from itertools import chain, islice
from operator import itemgetter

from msgspec import Struct

from overspill.lexical.kinds.kind import Traits
from overspill.lexical.outline import Source
from overspill.lexical.query import Term
from overspill.lexical.scan import MAX_COMMON_HITS, Finder, Hit, TermSamples
from overspill.lexical.weights import WEIGHTS
from overspill.tables.table import Span

BLOCK_BYTES = 512
"""About a record: terms in one block are near each other."""
_MAX_BLOCKS = 2_000
"""The best blocks, from which parts are chosen."""
_MAX_TAG_BYTES = 512
_MIN_BYTES_PER_HIT = 1_000
"""Terms that together occur more often hardly tell one part of a large output from another."""
_BITS = 64
"""Terms beyond this share a bit."""
_MAX_REMEMBERED_MASKS = 1 << 16
_MAX_SKIMMED_BYTES = 1_500
"""Searching so much that is hidden, and dropping what is found there, takes less time than a search on each side of it."""


class Visible:
    """What a reader sees of a kind that hides something. In arrays, because a page may have hundreds of thousands of scripts."""

    def __init__(self, size: int, hidden: Iterable[Span]) -> None:
        starts, ends = array("q"), array("q")
        self._starts, self._ends = starts, ends
        self._searched = [(0, size)]
        for start, end in hidden:
            starts.append(start)
            ends.append(end)
            if end - start > _MAX_SKIMMED_BYTES:
                first, last = self._searched.pop()
                self._searched += [(first, start), (end, last)]

    def find(self, finder: Finder, source: Source) -> Iterator[Hit]:
        """The hits that a reader sees."""
        starts, ends = self._starts, self._ends
        for span in self._searched:
            if not starts:
                yield from finder.hits(source, *span)
                continue
            for hit in finder.hits(source, *span):
                before = bisect_right(starts, hit[0]) - 1
                if before < 0 or hit[0] >= ends[before]:
                    yield hit

    def list_hidden(self, start: int, end: int) -> Iterator[Span]:
        """What is hidden of this span, cut at its edges."""
        numbers = slice(bisect_right(self._ends, start), bisect_left(self._starts, end))
        for first, last in zip(self._starts[numbers], self._ends[numbers], strict=True):
            yield first if first > start else start, last if last < end else end


class Places(Struct, frozen=True):
    """Where to look, best first, and all blocks that have what is asked."""

    best: list[int]
    """Positions of blocks."""
    telling: array[int]
    """Numbers of the blocks that contain what is asked, in order."""
    is_cut: bool
    """Whether counting stopped early."""


class _Found(Struct, frozen=True):
    """The blocks that have terms, in order, and which terms each has. Most blocks have none."""

    blocks: array[int]
    masks: array[int]
    total: int
    """How many blocks the text has."""
    is_cut: bool


def locate(source: Source, visible: Visible, every: tuple[Term, ...], samples: TermSamples, traits: Traits) -> Places:
    """In one pass, or in two if the first finds only words that phrase the request."""
    terms, everywhere = samples.drop_common_terms(every, _MIN_BYTES_PER_HIT)
    found = _scan(source, visible, terms, traits, MAX_COMMON_HITS if everywhere else None)
    met = _union(found)
    if len(terms) < len(every) and not any(term.role != "wording" and met & _bit(number) for number, term in enumerate(terms)):
        left = tuple(term for term in every if term not in terms)
        rarest, _ = samples.drop_common_terms(tuple(term for term in left if term.telling) or left, _MIN_BYTES_PER_HIT)
        terms += rarest
        found = _scan(source, visible, terms, traits, MAX_COMMON_HITS)
    return _choose(found, terms)


def _bit(number: int) -> int:
    return 1 << min(number, _BITS - 1)


def _union(found: _Found) -> int:
    met = 0
    for mask in set(found.masks):
        met |= mask
    return met


def _scan(source: Source, visible: Visible, terms: tuple[Term, ...], traits: Traits, most: int | None) -> _Found:
    """Which terms each block has."""
    blocks, masks = array("q"), array("Q")
    finder = Finder(terms, code=traits.is_code, raw=True)
    bits = [_bit(number) for number in range(len(terms))]
    is_markup = traits.is_markup
    hits = visible.find(finder, source) if terms else ()
    last = -1
    for start, _, term, _ in islice(hits, most):
        if is_markup:
            opened = source.rfind(b"<", start - _MAX_TAG_BYTES if start > _MAX_TAG_BYTES else 0, start)
            if opened >= 0 and source.find(b">", opened, start) < 0:
                continue  # in a tag
        block = start // BLOCK_BYTES
        if block == last:
            masks[-1] |= bits[term]
        else:
            blocks.append(block)
            masks.append(bits[term])
            last = block
    return _Found(blocks, masks, len(source) // BLOCK_BYTES + 1, next(iter(hits), None) is not None)


def _choose(found: _Found, terms: tuple[Term, ...]) -> Places:
    blocks, masks = found.blocks, found.masks
    times = Counter(masks)
    telling = sum({_bit(number) for number, term in enumerate(terms) if term.telling}) & _union(found)
    worth = [_weigh(term, number, times, found.total) for number, term in enumerate(terms)]

    @lru_cache(_MAX_REMEMBERED_MASKS)
    def value(mask: int) -> float:
        return sum(worth[number] for number in range(len(terms)) if mask & _bit(number))

    @lru_cache(_MAX_REMEMBERED_MASKS)
    def score(mask: int, beside: int) -> float:
        return value(mask) + WEIGHTS.beside_block * value(beside & ~mask)

    scored = ((score(mask, beside), block) for block, mask, beside in _list_beside(found))
    # Of equal ones, the first is in front.
    best = [block * BLOCK_BYTES for _, block in nlargest(_MAX_BLOCKS, scored, itemgetter(0))]
    wanted = telling or -1
    holding = array("q", (block for block, mask in zip(blocks, masks, strict=True) if mask & wanted))
    return Places(best, holding, found.is_cut)


def _list_beside(found: _Found) -> Iterator[tuple[int, int, int]]:
    """Each block with its terms, and those of the blocks on both sides."""
    before, before_mask = -2, 0
    following = chain(zip(found.blocks, found.masks, strict=True), ((-2, 0),))
    block, mask = next(following)
    for after, after_mask in following:
        beside = before_mask if before == block - 1 else 0
        yield block, mask, beside | after_mask if after == block + 1 else beside
        before, before_mask, block, mask = block, mask, after, after_mask


def _weigh(term: Term, number: int, times: Counter[int], total: int) -> float:
    holding = sum(count for mask, count in times.items() if mask & _bit(number))
    return term.weight * math.log(1 + (total - holding + 0.5) / (holding + 0.5))
