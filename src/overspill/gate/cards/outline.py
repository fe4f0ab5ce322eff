"""The card of anything that is neither a table nor a log: its headings, definitions, commits or files, and how it begins."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

from msgspec import Struct

from overspill.gate.cards.card import Card, Section, cut_line, indent, make_visible, name
from overspill.gate.cards.sample import OutputSample
from overspill.gate.cards.table import make_table_card, read_engine_tables
from overspill.lexical.index import Index, build
from overspill.lexical.kinds.kind import Kind, Layout
from overspill.lexical.render import render
from overspill.tables.table import Span
from overspill.text.encoding import decode
from overspill.text.humanize import ELLIPSIS, count_noun, shorten
from overspill.text.patterns import compile_pattern, find_spans

_MAX_LISTED = 40
_MAX_TITLE_CHARS = 80
_MAX_CUT_BYTES = 12 << 10
"""Of what the engine has to cut into records, which takes it a hundred times as long as a search."""
_OPENING_BYTES = 3_000
_MAX_PARAGRAPH_CHARS = 800
"""Shown of a line of the opening, which may be a paragraph."""
_MAX_ROW_BYTES = 1_000
"""On average, in a page that may be a table."""
_DEFINITION = compile_pattern(
    rb"(?m)^[ \t]{0,8}"
    rb"(?:(?:async|export|default|public|private|protected|static|final|abstract|pub(?:\(\w{1,20}\))?|unsafe|override) )*"
    rb"(?:def|class|function|func|fn|struct|impl|enum|trait|interface|type|namespace|module|resource|variable)\s+[\"\w(]"
)
_CHANGED_FILE = re.compile(rb"\n(?:diff --git |Index: )")
_COMMIT = re.compile(rb"\ncommit [0-9a-f]{7,64}\b")
_SUBJECT = re.compile(rb"\n    (\S[^\n]*+)")
_MATCH = re.compile(rb"\n((?:[A-Za-z]:)?+[^:\n]*+):\d++:")
_TAG = re.compile(rb"<([A-Za-z][\w:.-]{0,60})")
_MARKED_HEADING = re.compile(rb"\n {0,3}(?:> ){0,3}(?:(#{1,6})[ \t]++[^\s#]|(```|~~~))")
"""Or the fence of an example, in which there are none."""
_MAX_FENCED_BYTES = 16_384
"""A fence that is not closed within this is none."""
_OTHER_HEADING = re.compile(
    rb"\n\r?\n(?:(?=[^\s#][^\n]{0,118}+\n(?:={3,}|-{3,}|~{3,}|\^{3,})[ \t\r]*+\n)"
    rb"|(?=[ \t]*+(?:(?i:Part|Book|Volume|Title|Chapter|Article|Section|Clause|Schedule|Appendix|Annex|Exhibit)[ \t]++[\dIVXLC]++\b"
    rb"|\d++(?:\.\d++)*+\.?[ \t]++[A-Z])[^.\n]{0,80}+\.?[ \t\r]*+\n)"
    rb"|(?=[ \t]*+[A-Z][A-Z0-9 ,&'/()-]{3,80}+:?[ \t\r]*+\n(?![ \t]*+[A-Z][A-Z0-9 ,&'/()-]{3,80}+:?[ \t\r]*+\n)))"
)
"""Below a blank line: underlined, numbered, or in capitals, unless the next line is too."""
_PAGE_HEADING = re.compile(rb"<[hH][1-6](?:\s[^<>]{0,400}+)?>")
_MARKUP = re.compile(r"<[^<>]{0,400}>")
_END_OF_HEADING = re.compile("</h[1-6]", re.IGNORECASE)


class _Parts(Struct, frozen=True):
    """What a kind of text consists of."""

    noun: str
    find: Callable[[bytes], Iterator[Span]]
    """The depth and the position of each."""
    show: Callable[[bytes, int, int], str]
    """What is said of one, from its beginning and the next one's."""


def make_outline_card(sample: OutputSample, kind: Kind) -> Card:
    layout, data = kind.traits.layout, sample.data
    opening = build(sample.begin(_OPENING_BYTES).data, kind=kind)
    begins = [Section("begins", _list_opening(opening, sample), first=3)]
    if layout in _COUNTED:
        noun, pattern = _COUNTED[layout]
        counts = Counter(pattern.findall(b"\n" + data))
        items = [f"{times:,}× {name(decode(each))}" for each, times in counts.most_common(_MAX_LISTED)]
        title = f"{count_noun(len(counts), noun)}{sample.where}, most first"
        return Card([Section(title, items, len(counts), 10), *begins] if items else begins, sample)
    parts = _PARTS.get(layout)
    if parts is None or data.count(b"<tr") * _MAX_ROW_BYTES > len(data):
        sample = sample.begin(_MAX_CUT_BYTES)
        index = build(sample.data, kind=kind)
        if card := make_table_card(read_engine_tables(index), sample):
            return card
        parts = parts or _Parts("heading", lambda _: _find_labels(index), _show_line)
    found = list(parts.find(sample.data))
    items = _list_parts(sample, parts, found)
    listed = Section(count_noun(len(found), parts.noun) + sample.where, items, len(found), 12)
    return Card([listed, *begins] if items else begins, sample)


def _list_opening(index: Index, sample: OutputSample) -> list[str]:
    if not len(index.outline):
        return []
    text = render(index, index.outline.starts[0], index.total_bytes)
    if index.total_bytes < sample.size.bytes:  # without what may be half a character
        text = text[:-1] + ELLIPSIS
    return [line for line in indent(text, _MAX_PARAGRAPH_CHARS).split("\n") if line]


def _list_parts(sample: OutputSample, parts: _Parts, found: list[Span]) -> list[str]:
    """Of too many, only those of the upper levels."""
    depths = Counter(depth for depth, _ in found)
    levels = sorted(depths)
    while len(levels) > 1 and sum(depths[level] for level in levels) > _MAX_LISTED:
        levels.pop()
    chosen = [(levels.index(depth), start) for depth, start in found if depth in levels]
    ends = [*(start for _, start in chosen[1:]), len(sample.data)]
    shown = [
        (start, depth, parts.show(sample.data, start, end)) for (depth, start), end in islice(zip(chosen, ends), _MAX_LISTED)
    ]
    return [f"{sample.locate(start)}{' ' * (1 + depth)}{make_visible(text)}" for start, depth, text in shown if text]


def _find_labels(index: Index) -> Iterator[Span]:
    outline, depths = index.outline, list[int]()
    for start, end, parent in zip(outline.label_starts, outline.label_ends, outline.label_parents, strict=True):
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
        if b"|" not in index.text[start:end]:
            yield depths[-1], start


def _find_headings(data: bytes) -> Iterator[Span]:
    found, fenced = list[Span](), 0
    for mark in _MARKED_HEADING.finditer(b"\n" + data):
        start = mark.start()
        if mark[1] and start >= fenced:
            found.append((len(mark[1]), start))
        elif start >= fenced:
            fenced = data.find(b"\n" + mark[2], mark.end(), mark.end() + _MAX_FENCED_BYTES) + 4
    return iter(found or [(0, other.end() - 2) for other in _OTHER_HEADING.finditer(b"\n\n" + data)])


def _find_page_headings(data: bytes) -> Iterator[Span]:
    return ((data[found.start() + 2], found.start()) for found in _PAGE_HEADING.finditer(data))


def _find_definitions(data: bytes) -> Iterator[Span]:
    return ((0, start) for start, _ in find_spans(_DEFINITION, data, 0, len(data)))


def _show_line(data: bytes, start: int, end: int) -> str:
    text = decode(data[start : start + 1_000]).split("\n", 1)[0]
    return shorten(text.strip("#=> \r"), _MAX_TITLE_CHARS)


def _show_definition(data: bytes, start: int, end: int) -> str:
    return cut_line(decode(data[start : start + 1_000]).split("\n", 1)[0])


def _show_page_heading(data: bytes, start: int, end: int) -> str:
    markup = _END_OF_HEADING.split(decode(data[start : start + _MAX_PARAGRAPH_CHARS]))[0]
    return shorten(" ".join(html.unescape(_MARKUP.sub(" ", markup)).split()), _MAX_TITLE_CHARS)


def _show_commit(data: bytes, start: int, end: int) -> str:
    subject = _SUBJECT.search(data, start, end)
    return cut_line(decode(data[start + 7 : start + 16] + b" " + (subject[1] if subject else b"")))


def _show_changed_file(data: bytes, start: int, end: int) -> str:
    added, removed = (
        data.count(b"\n%b" % mark, start, end) - data.count(b"\n" + mark * 3 + b" ", start, end) for mark in (b"+", b"-")
    )
    return f"+{added:,} -{removed:,} {_show_definition(data, start, end).removeprefix('diff --git ')}"


def _find_lines(pattern: re.Pattern[bytes]) -> Callable[[bytes], Iterator[Span]]:
    """The lines that begin so; the pattern begins with a line end."""
    return lambda data: ((0, found.start()) for found in pattern.finditer(b"\n" + data))


_PARTS: dict[Layout, _Parts] = {
    "paragraphs": _Parts("heading", _find_headings, _show_line),
    "page": _Parts("heading", _find_page_headings, _show_page_heading),
    "definitions": _Parts("definition", _find_definitions, _show_definition),
    "hunks": _Parts("changed file", _find_lines(_CHANGED_FILE), _show_changed_file),
    "commits": _Parts("commit", _find_lines(_COMMIT), _show_commit),
}
_COUNTED: dict[Layout, tuple[str, re.Pattern[bytes]]] = {"results": ("matched file", _MATCH), "elements": ("element name", _TAG)}
