"""Prose and Markdown: paragraphs under headings, and the tables between them."""

from __future__ import annotations

import re
from itertools import pairwise

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import Outline
from overspill.lexical.records.lines import find_first
from overspill.lexical.records.passages import cut_passages
from overspill.tables.table import Text

_MIN_LINE_CHARS = 50
"""The average length of a line of running text, even if it is wrapped."""
_MIN_WRAPPED_SHARE = 0.07
"""If this share of lines continues on the next, short lines are headings, lists and examples among running text."""
_HEADING = re.compile(r"#{1,6} \S")
_TABLE_RULE = re.compile(r"\|(?:\s*+:?-++:?\s*+\|)++\s*+$")
_RULE = re.compile(r"([=~^\"*#+`-])\1{2,}+\s*+")
_MAX_RULE_DIFFERENCE = 3
"""How much longer or shorter than a title the line below it is."""
_MIN_TITLES, _MIN_TITLE_SHARE = 2, 0.02
_COLOUR_START = "\x1b["


def _is_prose(sample: Sample) -> bool:
    lines = sample.lines
    if not lines:
        return True
    if any(_COLOUR_START in line for line in lines):
        return False
    is_long = sum(map(len, lines)) >= _MIN_LINE_CHARS * len(lines) or sample.wrapped_share >= _MIN_WRAPPED_SHARE
    return (sample.is_wordy and (is_long or _has_underlined_titles(lines))) or _is_markdown(lines)


def _has_underlined_titles(lines: list[str]) -> bool:
    """As in reStructuredText, whose examples may take more lines than what they explain."""
    titles = sum(
        _RULE.fullmatch(below) is not None and abs(len(below) - len(title)) <= _MAX_RULE_DIFFERENCE
        for title, below in pairwise(lines)
    )
    return titles >= _MIN_TITLES and titles > _MIN_TITLE_SHARE * len(lines)


def _is_markdown(lines: list[str]) -> bool:
    headings = sum(_HEADING.match(line) is not None for line in lines)
    ruled = any(_TABLE_RULE.match(line) for line in lines) and sum(line[:1] == "|" for line in lines) > 0.3 * len(lines)
    return ruled or (headings >= _MIN_TITLES and headings > _MIN_TITLE_SHARE * len(lines))


def _cut(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    cut_passages(text, start, end, outline)


PROSE = Kind(
    "prose",
    _is_prose,
    _cut,
    Traits(is_running_text=True, has_context=True, has_topics=True, memory_per_byte=2, layout="paragraphs"),
    find_start=find_first(re.compile(rb"\n\s*\n"), re.compile(rb"\n")),
)
