"""Search results: every line is a record."""

from __future__ import annotations

import re

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.log import record_event
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import Outline
from overspill.tables.table import Text
from overspill.text.lines import is_blank, iterate_lines

MATCH = re.compile(
    r"(?:[A-Za-z]:)?(?:[^\WA-Za-z]|[.@+~-])*+[A-Za-z/\\](?:[\w./\\@+~]|-(?!\d++[:-]))*+[:-]\d++[:-]",
)
"""A path, which contains a letter or a slash, then a line number."""
_MIN_SHARE = 0.6


def are_matches(sample: Sample) -> bool:
    return sample.share(MATCH.match) > _MIN_SHARE


def _cut_lines(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    for line_start, line_end in iterate_lines(text, start, end):
        if not is_blank(text[line_start:line_end]):
            record_event(text, line_start, line_end, outline)


MATCHES = Kind(
    "matches", are_matches, _cut_lines, Traits(is_code=True, has_context=True, has_telling_lines=True, layout="results")
)
