"""Source code, and YAML, plans and descriptions, cut by indentation."""

from __future__ import annotations

import re
from itertools import pairwise

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.kinds.source import BANNER, is_source
from overspill.lexical.outline import Outline
from overspill.lexical.records.lines import find_first, split_long
from overspill.tables.table import Text
from overspill.text.lines import is_blank, iterate_lines

_MAX_BLOCK_BYTES = 900
_CLOSING = (b")", b"]", b"}")
_YAML = re.compile(r"\s*+(?:- )?[\w./\"'-]++:(?:\s|$)|\s*+- \S|\s*+#|---$")
_MIN_YAML_SHARE = 0.7


def _is_description(sample: Sample) -> bool:
    return sample.share(_YAML.match) > _MIN_YAML_SHARE


def cut_blocks(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    """A line and everything indented under it is a block. A block that is too large becomes a label above smaller ones."""
    lines = [(a, b, _indent(text[a:b])) for a, b in iterate_lines(text, start, end) if not is_blank(text[a:b])]
    spans = _find_block_ends(lines)
    banners = [number for number, (a, b, indent) in enumerate(lines) if not indent and BANNER.match(text, a, b)]
    for first, last in pairwise((-1, *banners, len(lines))):
        label = -1
        if first >= 0:
            label = outline.label(*lines[first][:2])
            outline.record(*lines[first][:2], label)
        _cut_file(text, lines, spans, (first + 1, last, label), outline)


def _cut_file(
    text: Text, lines: list[tuple[int, int, int]], spans: list[int], file: tuple[int, int, int], outline: Outline
) -> None:
    stack = [file]
    while stack:
        first, last, label = stack.pop()
        pending = first
        index = first
        while index < last:
            below = min(spans[index], last)
            if lines[below - 1][1] - lines[index][0] > _MAX_BLOCK_BYTES and below - index > 1:
                _record_lines(text, lines[pending:index], label, outline)
                inner = outline.label(lines[index][0], lines[index][1], label)
                outline.record(lines[index][0], lines[index][1], label)
                stack.append((below, last, label))
                stack.append((index + 1, below, inner))
                pending = last
                break
            if pending < index and (
                _follows_blank_line(text, lines, index) or lines[below - 1][1] - lines[pending][0] > _MAX_BLOCK_BYTES
            ):
                _record_lines(text, lines[pending:index], label, outline)
                pending = index
            index = below
        _record_lines(text, lines[pending:last], label, outline)


def _indent(line: bytes | bytearray) -> int:
    """A line that closes what another opened belongs below it, and so does what follows: `) -> int:` and the body."""
    plain = line.expandtabs(4)
    bare = plain.lstrip(b" ")
    return len(plain) - len(bare) + bare.startswith(_CLOSING)


def _find_block_ends(lines: list[tuple[int, int, int]]) -> list[int]:
    """For each line, the index of the next line that is not indented under it."""
    extents = [len(lines)] * len(lines)
    waiting: list[int] = []
    for index, (_, _, indent) in enumerate(lines):
        while waiting and lines[waiting[-1]][2] >= indent:
            extents[waiting.pop()] = index
        waiting.append(index)
    return extents


def _follows_blank_line(text: Text, lines: list[tuple[int, int, int]], index: int) -> bool:
    """Whether a blank line precedes this one."""
    return text.find(b"\n", lines[index - 1][1], lines[index][0]) >= 0


def _record_lines(text: Text, lines: list[tuple[int, int, int]], label: int, outline: Outline) -> None:
    if lines:
        for part in split_long(text, lines[0][0], lines[-1][1], 2 * _MAX_BLOCK_BYTES):
            outline.record(*part, label)


CODE = Kind(
    "code",
    is_source,
    cut_blocks,
    Traits(is_code=True, has_definitions=True, has_topics=True, has_telling_lines=True, memory_per_byte=9, layout="definitions"),
)
DESCRIPTION = Kind(
    "yaml",
    _is_description,
    cut_blocks,
    Traits(is_code=True, has_definitions=True, is_program_output=True, has_telling_lines=True, memory_per_byte=9),
    find_start=find_first(re.compile(rb"\n\s*\n(?=[^\s)}\]])"), re.compile(rb"\n(?=[^\s)}\]])"), re.compile(rb"\n")),
)
