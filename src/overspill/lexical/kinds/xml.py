"""XML: nested elements, cut until they are small enough to read."""

from __future__ import annotations

import re

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import Outline
from overspill.lexical.records.elements import cut_tree
from overspill.lexical.records.lines import find_first
from overspill.lexical.records.tree import xml_tree
from overspill.tables.table import Text

_XML = re.compile(rb"\s*+(?:<\?xml\b|<[A-Za-z][\w:.-]*+(?:\s[^<>]*+)?>)")
_CLOSED = re.compile(rb"</[A-Za-z][\w:.-]*>|/>")
_MAX_BYTES_PER_END = 1_000


def _is_xml(sample: Sample) -> bool:
    """Tried after HTML, which may begin in the same way."""
    head = sample.head
    return head.lstrip()[:5] == b"<?xml" or (
        _XML.match(head) is not None and len(_CLOSED.findall(head)) * _MAX_BYTES_PER_END > len(head)
    )


def _cut(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    cut_tree(text, xml_tree(text, start, end), start, end, outline, cut_embedded)


XML = Kind(
    "xml",
    _is_xml,
    _cut,
    Traits(memory_per_byte=6, layout="elements"),
    find_start=find_first(re.compile(rb"</[^<>]*>\s*+(?=<[A-Za-z])"), re.compile(rb">\s*+(?=<)")),
)
