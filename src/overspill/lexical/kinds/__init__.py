"""The kinds of text, each with its place in one list."""

from __future__ import annotations

from msgspec.structs import replace

from overspill.lexical.kinds.code import CODE, DESCRIPTION, defines
from overspill.lexical.kinds.conversations import MESSAGES, TURNS
from overspill.lexical.kinds.documents import HTML, PROSE
from overspill.lexical.kinds.kind import MAX_LINES, Kind, Sample
from overspill.lexical.kinds.logs import DIFF, HISTORY, LOG, MATCHES
from overspill.lexical.kinds.nested import JSON, NDJSON, XML
from overspill.lexical.kinds.rows import ACCESS_LOG, COLUMNS, CSV, LISTING
from overspill.tables.table import Text
from overspill.text.regex import regex

_BY_BEGINNING = NDJSON, JSON, HTML, XML, HISTORY, DIFF
_BY_LINES = ACCESS_LOG, LISTING, COLUMNS, CSV, TURNS, MESSAGES, LOG, MATCHES, DESCRIPTION, CODE, PROSE
KINDS: tuple[Kind, ...] = (*_BY_BEGINNING, *_BY_LINES)
"""All kinds of text in the order in which they are tried, the most certain first."""
LINES = LOG
"""Read line by line: the fallback for text that defines nothing and has few sentences."""
_NAMED = {kind.name: kind for kind in KINDS}
_TEXT = replace(LINES, name="text", traits=replace(LINES.traits, layout="text"))
_CLAUSE_END = regex(r"[a-z)\"'][.,;:]\s*+$")
_MIN_CLAUSES_SHARE = 0.2


def recognise(data: Text, start: int = 0, end: int | None = None, *, most_lines: int = MAX_LINES) -> Kind:
    """Recognises text by its beginning and its middle, using at most `most_lines` of each."""
    sample = Sample(data, start, len(data) if end is None else end, most_lines)
    if kind := next((kind for kind in KINDS if kind.recognise(sample)), None):
        return kind
    # Code with more comments and tables than statements, and documents with short lines.
    if defines(sample):
        return CODE
    return PROSE if sample.is_wordy and sample.share(_CLAUSE_END.search) > _MIN_CLAUSES_SHARE else LINES


def find_kind(text: Text, name: str = "") -> Kind:
    """The kind of a text, which decides how its tables are read: only logs have events. `name` is that of the kind, if known."""
    kind = _NAMED[name] if name else recognise(text)
    return _TEXT if not name and kind is LINES and not kind.recognise(Sample(text, 0, len(text))) else kind
