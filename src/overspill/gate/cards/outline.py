"""The card of anything that is neither a table nor a log: its shape, its headings, its definitions, or its files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Raw

from overspill.gate.cards.card import Card, Count, Section, cut_line, indent, make_visible, name
from overspill.gate.cards.sample import OutputSample
from overspill.lexical.cells import read_columns
from overspill.lexical.index import Index
from overspill.lexical.kinds.kind import Layout
from overspill.lexical.kinds.matches import MATCH
from overspill.lexical.outline import Table
from overspill.lexical.render import render
from overspill.reading.query.document import Value, is_array, is_object, open_raw
from overspill.reading.query.outline import outline_levels
from overspill.text.humanize import ELLIPSIS, count_noun, shorten
from overspill.text.lines import iterate_lines
from overspill.wording.cards import NextStep

_MAX_LISTED = 40
_MAX_HEADING_CHARS = 80
_MAX_HEADING_DEPTH = 6
_OPENING_BYTES = 6_000
_MAX_PARAGRAPH_CHARS = 800
"""Shown of a line of the opening, which may be a paragraph."""
_MAX_TABLE_NAMES = 6
_DEFINITION = re.compile(
    rb"\s{0,8}(?:(?:async|export|default|public|private|protected|static|final|abstract|pub(?:\(\w{1,20}\))?|unsafe|override) )*+"
    rb"(?:def|class|function|func|fn|struct|impl|enum|trait|interface|type|namespace|module|resource|variable)\s++[\"\w(]"
)
_TAG = re.compile(rb"<([A-Za-z][\w:.-]{0,60})")
_SUBJECT = re.compile(rb"^    (\S.*)$", re.MULTILINE)
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]{0,39}", re.ASCII)
_MAX_CHARS_PER_TOKEN = 16
"""A longer text has too many tokens for certain, near enough, and is not counted."""
_NEXT_LINES = 60
_NEXT_CHARS = 4_000


def make_json_outline_card(found: Sequence[Value], *, is_whole: bool) -> Card | None:
    """`found`: the JSON documents in the output. Returns None if they have no structure."""
    shapes = ["\n".join(f" {make_visible(line)}" for line in shape.split("\n")) for shape in outline_levels(found)]
    if not shapes:
        return None

    def fit(room: int, count: Count) -> list[str]:
        return [shape for shape in shapes if len(shape) <= _MAX_CHARS_PER_TOKEN * room and count(shape) <= room][:1]

    return Card(
        [Section("shape" if is_whole else "shape of what was read", fit=fit, rank=1)], [_suggest_member(open_raw(found[0]))]
    )


def _suggest_member(value: Value) -> NextStep:
    """The largest member, if its key is a plain name: it goes into a call."""
    members = {key: member for key, member in value.items() if _PLAIN_KEY.fullmatch(key)} if is_object(value) else {}
    sizes = {key: len(memoryview(member)) for key, member in members.items() if isinstance(member, Raw)}
    if not sizes:
        return NextStep("query", "/0" if is_array(value) else "@", "what is in it")
    largest = max(sizes, key=lambda key: sizes[key])
    return NextStep("query", f"/{largest}", f"what is in {largest}")


def make_outline_card(sample: OutputSample, index: Index) -> Card:
    return _MAKERS.get(index.traits.layout, _outline_text)(sample, index)


def _outline_text(sample: OutputSample, index: Index) -> Card:
    """Prose, Markdown and web pages: how it begins, headings, tables."""
    places, headings = _list_headings(sample, index)
    tables = [
        f"{sample.locate(index.outline.starts[table.first])} {_describe_table(index, table)}"
        for table in index.outline.tables[:_MAX_LISTED]
    ]
    sections = [
        Section("begins", _list_opening(index), first=3, rank=1),
        *([Section(f"headings{sample.where}", headings, len(places), 12, rank=2)] if headings else ()),
        *([Section(f"tables{sample.where}", tables, len(index.outline.tables), 3, rank=3)] if tables else ()),
    ]
    return Card(sections, [_suggest_lines(sample, places[1:2])])


def _list_opening(index: Index) -> list[str]:
    if not len(index.outline):
        return []
    start = index.outline.starts[0]
    end = min(index.total_bytes, start + _OPENING_BYTES)
    text = render(index, start, end)
    if end < index.total_bytes:  # without what may be half a character
        text = text[:-1] + ELLIPSIS
    return [line for line in indent(text, _MAX_PARAGRAPH_CHARS).split("\n") if line]


def _list_headings(sample: OutputSample, index: Index) -> tuple[list[int], list[str]]:
    """Where all of them are; and of too many, only those of the upper levels as lines."""
    outline, depths, listed = index.outline, list[int](), list[tuple[int, int, str]]()
    for start, end, parent in zip(outline.label_starts, outline.label_ends, outline.label_parents, strict=True):
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
        heading = " ".join(render(index, start, end).split()).strip("#= ")
        if heading and "|" not in heading:
            listed.append((depths[-1], start, heading))
    deepest = next(
        (depth for depth in range(_MAX_HEADING_DEPTH, 0, -1) if sum(each[0] <= depth for each in listed) <= _MAX_LISTED), 0
    )
    chosen = [each for each in listed if each[0] <= deepest][:_MAX_LISTED]
    lines = [
        f"{sample.locate(start)}{' ' * (1 + min(depth, _MAX_HEADING_DEPTH))}{make_visible(shorten(text, _MAX_HEADING_CHARS))}"
        for depth, start, text in chosen
    ]
    return [start for _, start, _ in listed], lines


def _describe_table(index: Index, table: Table) -> str:
    names = [name(each) for each in read_columns(index, table)[:_MAX_TABLE_NAMES] if each.strip()]
    return f"{count_noun(table.last - table.first, 'row')}, columns {', '.join(names)}" if names else "without a header"


def _outline_code(sample: OutputSample, index: Index) -> Card:
    starts = [
        (start, end)
        for start, end in iterate_lines(index.text, 0, index.total_bytes)
        if _DEFINITION.match(index.text, start, min(end, start + 200))
    ]
    if not starts:
        return _outline_text(sample, index)
    items = [f"{sample.locate(start)} {cut_line(render(index, start, end))}" for start, end in starts[:_MAX_LISTED]]
    title = count_noun(len(starts), "definition") + sample.where
    return Card([Section(title, items, len(starts), 10, rank=1)], [_suggest_lines(sample, [start for start, _ in starts[:1]])])


def _outline_diff(sample: OutputSample, index: Index) -> Card:
    outline = index.outline
    files: list[tuple[int, Counter[bytes]]] = []
    for record in range(len(outline)):
        label = outline.under[record]
        if label >= 0 and (not files or files[-1][0] != label):
            files.append((label, Counter()))
        lines = iterate_lines(index.text, outline.starts[record], outline.ends[record])
        beginnings = (bytes(index.text[start : start + 4]) for start, _ in lines)
        if files:
            files[-1][1].update(each[:1] for each in beginnings if each not in (b"+++ ", b"--- "))
    items = [
        f"{sample.locate(outline.label_starts[label])} +{changes[b'+']:,} -{changes[b'-']:,} "
        f"{cut_line(render(index, outline.label_starts[label], outline.label_ends[label]).removeprefix('diff --git '))}"
        for label, changes in files[:_MAX_LISTED]
    ]
    sections = [
        Section(f"changes in {count_noun(len(files), 'file')}{sample.where}", items, len(files), 10, rank=1),
        Section("begins", _list_opening(index), first=3, rank=2),
    ]
    return Card(sections, [_suggest_lines(sample, [outline.label_starts[label] for label, _ in files[:1]])])


def _outline_matches(sample: OutputSample, index: Index) -> Card:
    files, lines = Counter[str](), list[str]()
    for start, end in zip(index.outline.starts, index.outline.ends, strict=True):
        line = render(index, start, end)
        if found := MATCH.match(line):
            files[found[0].rstrip(":-0123456789")] += 1
        if len(lines) < _MAX_LISTED:
            lines.append(indent(line))
    items = [f"{times:,}× {cut_line(path)}" for path, times in files.most_common(_MAX_LISTED)]
    sections = [
        Section(f"matches in {count_noun(len(files), 'file')}{sample.where}, most first", items, len(files), 10, rank=1),
        Section("matches from the first on", lines, len(index.outline) if sample.is_whole else 0, 2, rank=2),
    ]
    return Card(sections, [_suggest_lines(sample, [0])])


def _outline_history(sample: OutputSample, index: Index) -> Card:
    outline = index.outline
    items: list[str] = []
    for start, end in list(zip(outline.label_starts, outline.label_ends, strict=True))[:_MAX_LISTED]:
        subject = _SUBJECT.search(index.text, end, end + _OPENING_BYTES)
        title = render(index, *subject.span(1)) if subject else ""
        items.append(f"{sample.locate(start)} {cut_line(render(index, start, end).removeprefix('commit ')[:9] + ' ' + title)}")
    total = len(outline.label_starts)
    return Card([Section(count_noun(total, "commit") + sample.where, items, total, 10, rank=1)], [_suggest_lines(sample, [0])])


def _outline_xml(sample: OutputSample, index: Index) -> Card:
    tags = Counter(found[1] for found in _TAG.finditer(index.text, 0, index.total_bytes))
    items = [f"{times:,}× {name(tag.decode('utf-8', 'replace'))}" for tag, times in tags.most_common(_MAX_LISTED)]
    sections = [
        Section(
            f"{count_noun(len(tags), 'kind')} of element{sample.where}, the most frequent first", items, len(tags), 10, rank=1
        ),
        Section("begins", _list_opening(index), first=3, rank=2),
    ]
    return Card(sections, [_suggest_lines(sample, [0])])


def _suggest_lines(sample: OutputSample, starts: Sequence[int]) -> NextStep:
    place = sample.locate(starts[0] if starts else 0)
    if not place.startswith("L"):
        return NextStep("chars", str(_NEXT_CHARS), "what it is about, part by part")
    line = int(place[1:])
    return NextStep("lines", f"{line}-{line + _NEXT_LINES}", "what it is about, part by part")


_MAKERS: dict[Layout, Callable[[OutputSample, Index], Card]] = {
    "definitions": _outline_code,
    "hunks": _outline_diff,
    "commits": _outline_history,
    "results": _outline_matches,
    "elements": _outline_xml,
}
