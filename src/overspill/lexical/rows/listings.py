"""Orders text without named columns: listings with a size in each line (ls -l, du, find), and histories, newest first."""

from __future__ import annotations

import re

from overspill.lexical.index import Index
from overspill.lexical.reply.render import render
from overspill.lexical.rows.cells import MOST_ROWS
from overspill.lexical.rows.measures import measure
from overspill.text.encoding import decode

_SIZE = re.compile(r"\d[\d,]*(?:\.\d+)?(?:[kKMGTP]i?B?|m?s)?")
_COMMIT = re.compile(rb"(?:commit )?[0-9a-f]{7,64}\b")
_MODE = re.compile(rb"^[-dlbcps][-rwxsStT]{9}\S? ", re.MULTILINE)
_HEAD_BYTES = 4_000
_MAX_SIZE_PLACES = 6
"""The size of a line is among this many words."""
_MIN_SIZED_SHARE = 0.8
_MAX_ROWS = 12


def find_listed_rows(index: Index, *, high: bool) -> list[int]:
    """Orders lines by the size that each has in the same place; among several such places, the one with the largest size."""
    outline = index.outline
    places = _count_size_places(index)
    sizes: list[dict[int, float]] = [{} for _ in range(places)]
    lines = min(len(outline), MOST_ROWS) if places else 0
    for record in range(lines):
        for place, word in enumerate(render(index, outline.starts[record], outline.ends[record]).split()[:places]):
            if _SIZE.fullmatch(word) and (size := measure(word, "span" if word.endswith("s") else "number")) is not None:
                sizes[place][record] = size
    everywhere = [found for found in sizes if len(found) >= max(3, _MIN_SIZED_SHARE * lines)]
    if not everywhere:
        return []
    size_of = max(everywhere, key=lambda found: max(found.values()))
    return sorted(size_of, key=lambda record: -size_of[record] if high else size_of[record])[:_MAX_ROWS]


def lists_sizes(index: Index) -> bool:
    """Whether each line at the beginning has a size where a listing has one."""
    if not index.traits.size_places:
        return False
    head = bytes(index.source[:_HEAD_BYTES])
    lines = decode(head).splitlines()[:-1]
    sized = sum(_SIZE.fullmatch(line.split(maxsplit=1)[0]) is not None for line in lines if line.strip())
    return _MODE.search(head) is not None or sized > _MIN_SIZED_SHARE * max(1, len(lines))


def _count_size_places(index: Index) -> int:
    """How many of the first words of a line may be its size. In a log, only the first: later numbers mean other things."""
    places = index.traits.size_places
    return _MAX_SIZE_PLACES if places and _MODE.search(index.text, 0, _HEAD_BYTES) else places


def find_newest_rows(index: Index, count: int, *, newest: bool) -> list[int]:
    """The commits at one end of a history; empty if this is not one."""
    if not index.traits.is_log or not _COMMIT.match(index.text):
        return []
    total = len(index.outline)
    return list(range(min(count, total)) if newest else range(total - 1, max(-1, total - 1 - count), -1))
