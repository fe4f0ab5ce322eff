"""JSON, one document or one for each line: nested elements, cut until they are small enough to read."""

from __future__ import annotations

import re

from overspill.lexical import reading
from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import Outline
from overspill.lexical.records.elements import cut_tree
from overspill.lexical.records.tree import find_element_start, json_tree
from overspill.tables.json_text import ENDING_BYTES, HEAD_BYTES, find_start
from overspill.tables.literals import is_literal, mask_literal
from overspill.tables.table import Text
from overspill.text import pieces

_NEXT_OBJECT = re.compile(rb"[}\]][^\S\n]*+\n\s*+[{\[]")
_ESCAPED_LETTER = b"\\u"


def _is_json(sample: Sample) -> bool:
    return find_start(sample.head, sample.ending) >= 0


def _is_ndjson(sample: Sample) -> bool:
    """Whether the first element ends on the first line and another follows."""
    if not _is_json(sample):
        return False
    first_end, opening = _NEXT_OBJECT.search(sample.head), sample.head.find(b"\n")
    return first_end is not None and first_end.start() <= opening


def _cut(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    head = bytes(text[start : min(end, start + HEAD_BYTES)])
    inside = max(0, find_start(head, bytes(text[max(start, end - ENDING_BYTES) : end])))
    if is_literal(head[inside:]):
        masked = mask_literal(bytes(text[start + inside : end]))
        tree = json_tree(masked, 0, len(masked)).shift(start + inside)
    else:
        tree = json_tree(text, start + inside, end)
    cut_tree(text, tree, start, end, outline, cut_embedded)


def _read(text: Text, size: int, fill: bytes) -> Text:
    return reading.spell_letters(text, 0, size, fill) if pieces.find(text, _ESCAPED_LETTER, 0, size) >= 0 else text


JSON = Kind(
    "json",
    _is_json,
    _cut,
    Traits(is_celled=True, has_members=True, has_string_escapes=True, memory_per_byte=6, locator="pointer", layout="document"),
    _read,
    find_element_start,
)
NDJSON = Kind(
    "ndjson",
    _is_ndjson,
    _cut,
    Traits(
        is_celled=True,
        is_program_output=True,
        has_telling_lines=True,
        has_string_escapes=True,
        memory_per_byte=6,
        locator="line",
        layout="documents",
    ),
    _read,
)
