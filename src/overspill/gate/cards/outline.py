"""The card of anything but tables and logs: its headings, definitions, commits or files, and its beginning."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice, zip_longest

from overspill.gate.cards.card import Card, Section, indent, make_visible
from overspill.gate.cards.sample import OutputSample
from overspill.lexical.cutting import COLOUR_START
from overspill.lexical.index import Index, build
from overspill.lexical.kinds.kind import Kind, Layout
from overspill.lexical.reply.render import render
from overspill.text.encoding import decode
from overspill.text.humanize import ELLIPSIS, count_noun, shorten
from overspill.text.regex import Pattern, regex

_MIN_LISTED, _MAX_LISTED = 8, 40
_MAX_TITLE_CHARS, _MAX_PARAGRAPH_CHARS = 120, 800
_MAX_CUT_BYTES = 12 << 10
"""How much the engine may cut into records, which takes it a hundred times as long as a search."""
_OPENING_BYTES = 3_000
_FENCE = rb"\n {0,3}(?:```|~~~)"
_CAPITALS = rb"[ \t]*+[A-Z][A-Z0-9 ,&'/()-]{3,80}+:?[ \t\r]*+\n"
_DIVISIONS = rb"Part|Book|Volume|Title|Chapter|Article|Section|Clause|Schedule|Appendix|Annex|Exhibit"
_PARTS: dict[Layout, tuple[str, Pattern[bytes]]] = {
    "paragraphs": (
        "heading",
        regex(rb"%b[^\n]*+(?:(?!%b)\n[^\n]*+){0,400}+%b|\n {0,3}(?:> ){0,3}(#{1,6})[ \t]++[^\s#]" % (_FENCE, _FENCE, _FENCE)),
    ),
    "page": ("heading", regex(rb"<[hH]([1-6])(?:\s[^<>]{0,400}+)?>")),
    "definitions": (
        "definition",
        regex(
            rb"\n([ \t]{0,8}+)(?:(?:async|export|default|public|private|protected|static|final|abstract|unsafe|override"
            rb"|pub(?:\(\w{1,20}\))?) )*+(?:def|class|function|func|fn|struct|impl|enum|trait|interface|type|namespace|module"
            rb"|resource|variable)\s++[\"\w(]"
        ),
    ),
    "hunks": ("changed file", regex(rb"\n()(?:diff --git |Index: )")),
    "commits": ("commit", regex(rb"\n()commit [0-9a-f]{7,64}\b")),
}
"""The parts of each kind of text, and how they begin. The first group is the depth; without it, it is a fenced example."""
_UNMARKED_HEADING = regex(
    rb"\n\r?\n()(?:(?=[^\s#][^\n]{0,118}+\n(?:={3,}|-{3,}|~{3,}|\^{3,})[ \t\r]*+\n)|(?=%b(?!%b))"
    rb"|(?=[ \t]*+(?:(?i:%b)[ \t]++[\dIVXLC]++\b|\d++(?:\.\d++)*+\.?[ \t]++[A-Z])[^.\n]{0,80}+\.?[ \t\r]*+\n))"
    % (_CAPITALS, _CAPITALS, _DIVISIONS)
)
"""A line below a blank line that is underlined, numbered, or in capitals unless the next line is too."""
_COUNTED: dict[Layout, tuple[str, Pattern[bytes]]] = {
    "results": ("matched file", regex(rb"\n((?:[A-Za-z]:)?+[^:\n]*+):\d++:")),
    "elements": ("element name", regex(rb"<([A-Za-z][\w:.-]{0,60})")),
}
_SUBJECT = regex(rb"\n    (\S[^\n]*+)")
_MARKUP = regex(r"<[^<>]{0,400}>")
_END_OF_HEADING = regex("(?i)</h[1-6]")

Part = tuple[bytes, int]
"""The text that shows its depth, and its position."""


def make_outline_card(sample: OutputSample, kind: Kind) -> Card:
    layout, data = kind.traits.layout, sample.data
    part = sample.begin(_OPENING_BYTES)
    text = render(build(part.data, kind=kind), 0, len(part.data)) if kind.read or COLOUR_START in part.data else decode(part.data)
    if not part.is_whole:  # the last character may be cut in half
        text = text[:-1] + ELLIPSIS
    begins = Section("begins", [line for line in indent(text, _MAX_PARAGRAPH_CHARS).split("\n") if line], first=3)
    if layout in _COUNTED:
        noun, pattern = _COUNTED[layout]
        counts = Counter(pattern.findall(b"\n" + data))
        items = [
            f"{times:,}× {make_visible(shorten(decode(each), _MAX_TITLE_CHARS))}"
            for each, times in counts.most_common(_MAX_LISTED)
        ]
        return Card(
            [Section(f"{count_noun(len(counts), noun)}{sample.where}, most first", items, len(counts), 10), begins], sample
        )
    (noun, pattern), labels = _PARTS.get(layout, ("heading", None)), list[Part]()
    if pattern is None:
        sample = sample.begin(_MAX_CUT_BYTES)
        labels = list(_find_labels(build(sample.data, kind=kind)))
    found = _find(pattern, data) if pattern else labels
    if layout == "paragraphs" and not found:
        found = _find(_UNMARKED_HEADING, data)
    items = _list_parts(sample, layout, found)
    listed = Section(count_noun(len(found), noun) + sample.where, items, len(found), 12)
    return Card([listed, begins] if items else [begins], sample)


def _find(pattern: Pattern[bytes], data: bytes) -> list[Part]:
    return [(found[1], found.start(1) - 2) for found in pattern.finditer(b"\n\n" + data) if found[1] is not None]


def _find_labels(index: Index) -> Iterator[Part]:
    outline, depths = index.outline, list[bytes]()
    for start, end, parent in zip(outline.label_starts, outline.label_ends, outline.label_parents, strict=True):
        depths.append(depths[parent] + b" " if parent >= 0 else b"")
        if b"|" not in index.text[start:end]:
            yield depths[-1], start


def _list_parts(sample: OutputSample, layout: Layout, found: list[Part]) -> list[str]:
    """Lists the parts; if there are too many, only those on the upper levels."""
    times = Counter([depth for depth, _ in found])
    levels = sorted(times)
    while len(found) > _MAX_LISTED and sum(times[level] for level in levels[:-1]) >= _MIN_LISTED:
        levels.pop()
    chosen = [part for part in found if part[0] in levels]
    show, lines = _SHOWN.get(layout, _show_line), list[str]()
    for (depth, start), following in islice(zip_longest(chosen, chosen[1:]), _MAX_LISTED):
        if text := show(sample.data, start, following[1] if following else len(sample.data)):
            text = make_visible(shorten(text.strip(), _MAX_TITLE_CHARS))
            lines.append(f"{sample.locate(start)}{' ' * (1 + levels.index(depth))}{text}")
    return lines


def _show_line(data: bytes, start: int, end: int) -> str:
    return decode(data[start : start + 1_000]).split("\n", 1)[0].strip("#=> \r")


def _show_page_heading(data: bytes, start: int, end: int) -> str:
    markup = _END_OF_HEADING.split(decode(data[max(0, start - 2) : start + _MAX_PARAGRAPH_CHARS]))[0]
    return " ".join(html.unescape(_MARKUP.sub(" ", markup)).split())


def _show_commit(data: bytes, start: int, end: int) -> str:
    subject = _SUBJECT.search(data, start, end)
    return decode(data[start + 7 : start + 16] + b" " + (subject[1] if subject else b""))


def _show_changed_file(data: bytes, start: int, end: int) -> str:
    added, removed = (
        data.count(b"\n%b" % mark, start, end) - data.count(b"\n" + mark * 3 + b" ", start, end) for mark in (b"+", b"-")
    )
    return f"+{added:,} -{removed:,} {_show_line(data, start, end).removeprefix('diff --git ')}"


_SHOWN: dict[Layout, Callable[[bytes, int, int], str]] = {
    "page": _show_page_heading,
    "commits": _show_commit,
    "hunks": _show_changed_file,
}
