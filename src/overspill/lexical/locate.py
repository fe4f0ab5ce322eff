"""Finds the terms of a question in a large output without cutting it."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache, reduce
from heapq import nlargest
from itertools import chain, islice
from operator import itemgetter

from msgspec import Struct

from overspill.lexical.kinds.kind import Traits
from overspill.lexical.outline import Source
from overspill.lexical.query import Term
from overspill.lexical.scan import Finder, Hit, TermSamples
from overspill.lexical.weights import WEIGHTS, idf
from overspill.tables.table import Span

BLOCK_BYTES = 512
"""About the size of a record. Terms in one block are near each other."""
_MAX_BLOCKS = 2_000
"""The best blocks, from which parts are chosen."""
_MAX_TAG_BYTES = 512
_MIN_BYTES_PER_HIT = 1_000
"""Terms that together occur more often hardly distinguish the parts of a large output."""
_BITS = 64
"""Terms beyond this share a bit."""
_MAX_REMEMBERED_MASKS = 1 << 16
_MAX_SKIMMED_BYTES = 1_500
"""Up to this size, searching a hidden span and dropping its hits is faster than a search on each side of it."""


class Visible:
    """The visible parts of an output that hides others. Uses arrays, because a page may have hundreds of thousands of scripts."""

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
        """The hidden parts of this span, cut at its edges."""
        numbers = slice(bisect_right(self._ends, start), bisect_left(self._starts, end))
        for first, last in zip(self._starts[numbers], self._ends[numbers], strict=True):
            yield first if first > start else start, last if last < end else end


class Places(Struct, frozen=True):
    """Where to look, best first, and all blocks that match the question."""

    best: list[int]
    """Positions of blocks."""
    telling: array[int]
    """Numbers of the blocks that match the question, in order."""
    is_cut: bool
    """Whether counting stopped early."""


def locate(source: Source, visible: Visible, every: tuple[Term, ...], samples: TermSamples, traits: Traits) -> Places:
    def scan(terms: tuple[Term, ...], most: int | None) -> tuple[tuple[array[int], array[int], bool], set[int]]:
        found = _scan(source, visible, terms, traits, most)
        met = reduce(int.__or__, set(found[1]), 0)
        return found, {number for number in range(len(terms)) if met & _bit(number)}

    terms, (blocks, masks, is_cut) = samples.search(every, _MIN_BYTES_PER_HIT, scan)
    times, total = Counter(masks), len(source) // BLOCK_BYTES + 1
    bits = [_bit(number) for number in range(len(terms))]
    holding = [sum(count for mask, count in times.items() if mask & bit) for bit in bits]
    worth = [term.weight * idf(total, held) for term, held in zip(terms, holding, strict=True)]

    @lru_cache(_MAX_REMEMBERED_MASKS)
    def value(mask: int) -> float:
        return sum(each for each, bit in zip(worth, bits, strict=True) if mask & bit)

    @lru_cache(_MAX_REMEMBERED_MASKS)
    def score(mask: int, beside: int) -> float:
        return value(mask) + WEIGHTS.beside_block * value(beside & ~mask)

    scored = ((score(mask, beside), block) for block, mask, beside in _list_beside(blocks, masks))
    # Blocks with equal scores stay in order.
    best = [block * BLOCK_BYTES for _, block in nlargest(_MAX_BLOCKS, scored, itemgetter(0))]
    wanted = sum({bit for bit, term, held in zip(bits, terms, holding, strict=True) if term.telling and held}) or -1
    return Places(best, array("q", (block for block, mask in zip(blocks, masks, strict=True) if mask & wanted)), is_cut)


def _bit(number: int) -> int:
    return 1 << min(number, _BITS - 1)


def _scan(
    source: Source, visible: Visible, terms: tuple[Term, ...], traits: Traits, most: int | None
) -> tuple[array[int], array[int], bool]:
    """The blocks that have terms, in order; which terms each has; and whether counting stopped early."""
    blocks, masks = array("q"), array("Q")
    finder = Finder(terms, code=traits.is_code, raw=True)
    bits = [_bit(number) for number in range(len(terms))]
    is_markup = traits.is_markup
    hits = visible.find(finder, source) if terms else ()
    last = -1
    for start, _, term in islice(hits, most):
        if is_markup:
            opened = source.rfind(b"<", start - _MAX_TAG_BYTES if start > _MAX_TAG_BYTES else 0, start)
            if opened >= 0 and source.find(b">", opened, start) < 0:
                continue  # the hit is inside a tag
        block = start // BLOCK_BYTES
        if block == last:
            masks[-1] |= bits[term]
        else:
            blocks.append(block)
            masks.append(bits[term])
            last = block
    return blocks, masks, next(iter(hits), None) is not None


def _list_beside(blocks: array[int], masks: array[int]) -> Iterator[tuple[int, int, int]]:
    """Each block with its terms, and the terms of the blocks on both sides."""
    before, before_mask = -2, 0
    following = chain(zip(blocks, masks, strict=True), ((-2, 0),))
    block, mask = next(following)
    for after, after_mask in following:
        beside = before_mask if before == block - 1 else 0
        yield block, mask, beside | after_mask if after == block + 1 else beside
        before, before_mask, block, mask = block, mask, after, after_mask
