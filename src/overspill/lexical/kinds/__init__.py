"""The kinds of text. A new kind takes a module here and its place in this list."""

from __future__ import annotations

import re

from overspill.lexical.kinds.code import CODE, DESCRIPTION
from overspill.lexical.kinds.columns import ACCESS_LOG, COLUMNS, LISTING
from overspill.lexical.kinds.delimited import CSV
from overspill.lexical.kinds.diff import DIFF
from overspill.lexical.kinds.history import HISTORY
from overspill.lexical.kinds.html import HTML
from overspill.lexical.kinds.json import JSON, NDJSON
from overspill.lexical.kinds.kind import Kind
from overspill.lexical.kinds.log import LOG
from overspill.lexical.kinds.matches import MATCHES
from overspill.lexical.kinds.messages import MESSAGES
from overspill.lexical.kinds.prose import PROSE
from overspill.lexical.kinds.sample import MAX_LINES, Sample
from overspill.lexical.kinds.source import defines
from overspill.lexical.kinds.tagged import TAGGED
from overspill.lexical.kinds.turns import MINUTES, TURNS
from overspill.lexical.kinds.xml import XML
from overspill.tables.table import Text

KINDS: tuple[Kind, ...] = (
    NDJSON,
    JSON,
    HTML,
    XML,
    HISTORY,
    DIFF,
    ACCESS_LOG,
    LISTING,
    COLUMNS,
    CSV,
    MINUTES,
    TURNS,
    TAGGED,
    MESSAGES,
    LOG,
    MATCHES,
    DESCRIPTION,
    CODE,
    PROSE,
)
"""In the order in which they are tried: kinds that a beginning shows, then those that lines show, the surest first."""
LINES = LOG
"""What is recognised as nothing else, defines nothing and has few sentences is read line by line."""
_CLAUSE_END = re.compile(r"[a-z)\"'][.,;:]\s*+$")
_MIN_CLAUSES_SHARE = 0.2


def recognise(data: Text, start: int = 0, end: int | None = None, *, most_lines: int = MAX_LINES) -> Kind:
    """By its beginning and its middle, with at most `most_lines` of each."""
    sample = Sample(data, start, len(data) if end is None else end, most_lines)
    return next((kind for kind in KINDS if kind.recognise(sample)), None) or _guess(sample)


def _guess(sample: Sample) -> Kind:
    """Of code that has more comments and tables than statements, and of documents with short lines."""
    if defines(sample):
        return CODE
    return PROSE if sample.is_wordy and sample.share(_CLAUSE_END.search) > _MIN_CLAUSES_SHARE else LINES
