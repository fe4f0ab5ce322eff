"""Columns aligned with spaces, as `kubectl get`, `ps` and `df` print them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate, pairwise

from overspill.tables.headers import NUMBER
from overspill.tables.table import RowFormat, Span, make_unique
from overspill.text.regex import regex

_WORD = regex(r"\S+")
_HEADER_WORD = regex(r"(?:Local|Peer|Foreign) Address(?::Port(?=Process)|\S*+)|\S++")
"""Cells below an address may start anywhere below it. `ss` writes no space between its last two names."""
_APART = regex(r"\S++(?: \S++)*+")
"""A cell in rows with two or more spaces between cells."""
_RULE_MARKS = frozenset("-=+ \t\r\n")
_RULE_PART = regex(r"={2,}|(?<!\S)-+(?!\S)")
_MIN_READ_SHARE = 0.7
"""The share of rows that a format must be able to split."""
_MIN_ALIKE_SHARE = 0.8
_MAX_BEYOND_CHARS = 1_000
"""How far to read a row beyond its header, to find out where cells begin."""


class Aligned(RowFormat, frozen=True):
    """`gaps` are blank positions, in characters, between cells of most rows. `is_apart`: always at least two spaces."""

    gaps: tuple[int, ...] = ()
    is_apart: bool = False

    def split(self, row: str) -> list[str]:
        row = row.rstrip("\r\n").expandtabs()
        size = len(row)
        for gap in self.gaps:
            if gap < size and (row[gap] != " " or (self.is_apart and row[gap - 1] != " " and row[gap + 1 : gap + 2] != " ")):
                return self._split_uneven(row)
        return self._cut(row)

    def _cut(self, row: str) -> list[str]:
        return [row[cell].strip() for cell in _list_cells(self.gaps)]

    def _split_uneven(self, row: str) -> list[str]:
        """Splits a row with a cell wider than its column. Empty unless each word or group can be a cell of its column."""
        if self.is_apart:
            cells = _APART.findall(row)
            if len(cells) == len(self.names):
                return cells
            if all(row[gap : gap + 1] in (" ", "") for gap in self.gaps):
                return self._cut(row)
        cells, shift, position = list[str](), 0, 0
        for low, high in pairwise((-1, *self.gaps)):
            word = _WORD.search(row, position)
            # Cells only move to the right, by the excess width of an earlier cell.
            if word is None or word.end() <= low or word.start() >= high + shift:
                return []
            shift, position = max(shift, word.end() - high), word.end()
            cells.append(word[0])
        last = row[position:].strip()
        return [*cells, last] if len(row.rstrip()) > self.gaps[-1] else []


@cache
def _list_cells(gaps: tuple[int, ...]) -> list[slice]:
    return [slice(start + 1, end) for start, end in zip((-1, *gaps), (*gaps, None), strict=True)]


class Worded(RowFormat, frozen=True):
    """Each word is a cell, and the last cell takes the rest."""

    def split(self, row: str) -> list[str]:
        cells = row.strip().split(None, len(self.names) - 1)
        return cells if len(cells) == len(self.names) else []


def is_underline(line: str) -> bool:
    """Whether a line underlines column names with dashes."""
    return _RULE_MARKS.issuperset(line) and len(_RULE_PART.findall(line)) > 1


def find_aligned(header: str, rows: Sequence[str], rule: str = "") -> RowFormat | None:
    """How to split these rows; None if the header does not show it. `rule` is the line of dashes below the header."""
    header = header.rstrip("\r\n").expandtabs()
    rows = [row[: len(header) + _MAX_BEYOND_CHARS].rstrip("\r\n").expandtabs() for row in rows]
    words = [[found.span() for found in _WORD.finditer(row)] for row in rows]
    spans = _read_rule(header, rule) if rule else _join_names(header, rows, words)
    if spans and sum(bool(row) and row[0][1] < spans[0][0] for row in words) > 0.5 * len(rows):
        spans = [(0, 0), *spans]  # a column that the header does not name
    if len(spans) > 1 and rows:
        is_apart = all(following[0] - span[1] > 1 for span, following in pairwise(spans))
        names = tuple(make_unique(header[start:end] for start, end in spans))
        found = Aligned(names, _find_gaps(spans, words), is_apart)
        if sum(len(found.split(row)) > 1 for row in rows) >= _MIN_READ_SHARE * len(rows):
            return found
    names = header.split()
    many = sum(len(row) >= len(names) for row in words)
    if not rule and len(names) > 1 and many >= _MIN_ALIKE_SHARE * len(rows) and _have_alike(words, len(names), 0.5):
        return Worded(tuple(make_unique(names)))
    return None


def is_data(header: list[str], rows: Iterable[list[str]]) -> bool:
    """Whether an apparent header is a row of data: it has a number where the others have numbers."""
    numbers = [place for place, cell in enumerate(header) if NUMBER.match(cell)]
    rows = list(rows) if numbers else []
    columns = ([row[place] for row in rows if place < len(row) and row[place]] for place in numbers)
    return any(sum(NUMBER.match(cell) is not None for cell in below) > _MIN_ALIKE_SHARE * len(below) for below in columns)


def _read_rule(header: str, rule: str) -> list[Span]:
    """Finds the names in a header by the dashes below it. A row of dashes may be shorter than its name."""
    parts = [found.span() for found in _RULE_PART.finditer(rule.expandtabs())]
    if parts and header[: parts[0][0]].strip():
        parts = [(0, len(header[: parts[0][0]].rstrip())), *parts]
    stops = [*(start for start, _ in parts[1:]), len(header)]
    ends = [max(end, start + len(header[start:stop].rstrip())) for (start, end), stop in zip(parts, stops, strict=True)]
    return [(start, end) for (start, _), end in zip(parts, ends, strict=True)]


def _join_names(header: str, rows: Sequence[str], words: Sequence[Sequence[Span]]) -> list[Span]:
    """Finds the column names. Words with one space between them may be one name, such as `Mounted on`."""
    named = [found.span() for found in _HEADER_WORD.finditer(header)]
    apart = [found.span() for found in _APART.finditer(header)]
    has_apart = len(apart) > 1 and _have_alike([_APART.findall(row) for row in rows], len(apart), _MIN_ALIKE_SHARE)
    has_words = _have_alike(words, len(named), _MIN_ALIKE_SHARE)
    if has_apart and not (has_words and _are_aligned(named, words)):
        return apart
    begins = [True] * len(named) if has_words else _vote(named, words)
    spans, is_whole = list[Span](), True
    for (start, end), begins_column in zip(named, begins, strict=True):
        begins_column, is_whole = begins_column or is_whole, " " in header[start:end]
        if begins_column:
            spans.append((start, end))
        else:
            spans[-1] = (spans[-1][0], end)
    return spans


def _have_alike(rows: Sequence[Sequence[object]], count: int, share: float) -> bool:
    return sum(len(row) == count for row in rows) > share * len(rows)


def _are_aligned(named: list[Span], rows: Sequence[Sequence[Span]]) -> bool:
    """Whether each word of the header has words below it that begin or end at the same place."""
    rows = [row for row in rows if len(row) == len(named)]
    return all(
        max(sum(word[side] == name[side] for word in below) for side in (0, 1)) >= _MIN_ALIKE_SHARE * len(rows)
        for name, below in zip(named, zip(*rows, strict=True), strict=True)
    )


def _vote(named: list[Span], rows: Sequence[Sequence[Span]]) -> list[bool]:
    """Whether each word of the header begins a column: in most rows with text below it and the word before it, a gap is there."""
    votes = [0] * len(named)
    for row in rows:
        starts, ends = [start for start, _ in row], [end for _, end in row]
        below = [(bisect_right(ends, start), bisect_left(starts, end)) for start, end in named]
        for number, ((first, stop), (following, last)) in enumerate(pairwise(below), 1):
            if first < stop and following < last:
                votes[number] += 1 if following >= stop else -1
    return [number == 0 or start - named[number - 1][1] != 1 or votes[number] > 0 for number, (start, _) in enumerate(named)]


def _find_gaps(spans: Sequence[Span], rows: Sequence[Sequence[Span]]) -> tuple[int, ...]:
    """Between two names, the position that is blank in most rows."""
    size = spans[-1][1] + 1
    starts, ends = (Counter(word[side] for row in rows for word in row) for side in (0, 1))
    used = list(accumulate(starts[position] - ends[position] for position in range(size)))
    gaps: list[int] = []
    for (_, end), (start, until) in pairwise(spans):
        between = range(end, start) or range(max(0, end - 1), end + 1)
        least = min(used[position] for position in between)
        if least and not used[until - 1] and until == size - 1:  # cells are wider than their name, and the last column is empty
            between = range(end, until)
            least = 0
        best = [position for position in between if used[position] == least]
        if 2 * starts[start] > len(rows):
            gaps.append(best[-1])  # the right one is never wider to the left
        else:
            gaps.append(best[0] if 2 * ends[end] > len(rows) else best[len(best) // 2])
    return tuple(gaps)
