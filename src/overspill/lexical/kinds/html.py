"""Web pages: paragraphs, list items and table rows, under headings."""

from __future__ import annotations

import re

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.matches import are_matches
from overspill.lexical.kinds.messages import are_messages
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.kinds.source import has_definitions
from overspill.lexical.outline import Outline
from overspill.lexical.reading import find_hidden, strip_tags
from overspill.lexical.records.lines import find_first
from overspill.lexical.records.passages import cut_passages
from overspill.tables.bars import is_rule
from overspill.tables.table import Text

_TAG = re.compile(rb"<(?:t[drh]|p|div|a|li|ul|span|table|br|h[1-6]|b|i|body|head|meta)(?:[\s/][^<>]{0,400})?>", re.IGNORECASE)
_DOCTYPE = re.compile(rb"\s*+(?:<!--.*?-->\s*+)*+<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)
_XML_START = b"<?xml"
_HEAD_BYTES = 2_000
_MAX_BYTES_PER_TAG = 700


def _is_html(sample: Sample) -> bool:
    head = sample.head
    if head.lstrip()[:5] == _XML_START and b"<html" not in head[:_HEAD_BYTES]:
        return False
    if _DOCTYPE.match(head):
        return True
    if head.count(b"<") * _MAX_BYTES_PER_TAG <= len(head) or len(_TAG.findall(head)) * _MAX_BYTES_PER_TAG <= len(head):
        return False
    # Otherwise the tags may be in comments, strings, messages and the tables of Markdown.
    others = (are_matches, has_definitions, are_messages, _has_rule)
    return head.lstrip().startswith(b"<") or not any(is_other(sample) for is_other in others)


def _has_rule(sample: Sample) -> bool:
    return any(map(is_rule, sample.lines))


def _cut(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    cut_passages(text, start, end, outline, wrapped=False)


HTML = Kind(
    "html",
    _is_html,
    _cut,
    Traits(is_markup=True, has_context=True, memory_per_byte=8, layout="page"),
    strip_tags,
    find_first(re.compile(rb"(?=<(?:tr|p|li|div|h[1-6]|table|ul|ol|dl|section|article)[\s>])", re.IGNORECASE), re.compile(rb">")),
    find_hidden,
)
