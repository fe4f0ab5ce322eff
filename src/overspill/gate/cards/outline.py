"""The card of anything that is neither a table nor a log: its shape, its headings, its definitions, or its files."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise

from msgspec import Raw

from overspill.gate.cards.card import Card, Count, Section, cut_line, indent, make_visible, name
from overspill.gate.cards.sample import OutputSample
from overspill.gate.cards.table import make_table_card, read_engine_tables
from overspill.lexical.cells import read_columns
from overspill.lexical.index import Index, build
from overspill.lexical.kinds.kind import Kind, Layout
from overspill.lexical.kinds.matches import MATCH
from overspill.lexical.outline import Table
from overspill.lexical.render import render
from overspill.reading.query.document import Value, is_array, is_object, open_raw
from overspill.reading.query.outline import outline_levels
from overspill.tables.table import Span
from overspill.text.encoding import decode
from overspill.text.humanize import ELLIPSIS, count_noun, shorten
from overspill.text.patterns import compile_pattern, find_spans
from overspill.wording.cards import NextStep

_MAX_LISTED = 40
_MAX_COMPARED = 200
_MAX_HEADING_CHARS = 80
_MAX_HEADING_DEPTH = 6
_OPENING_BYTES = 6_000
_MAX_PARAGRAPH_CHARS = 800
"""Shown of a line of the opening, which may be a paragraph."""
_MAX_TABLE_NAMES = 6
_DEFINITION = compile_pattern(
    rb"(?m)^[ \t]{0,8}"
    rb"(?:(?:async|export|default|public|private|protected|static|final|abstract|pub(?:\(\w{1,20}\))?|unsafe|override) )*"
    rb"(?:def|class|function|func|fn|struct|impl|enum|trait|interface|type|namespace|module|resource|variable)\s+[\"\w(]"
)
_CHANGED_FILE = re.compile(rb"\n(?:diff --git |Index: )")
_COMMIT = re.compile(rb"\ncommit [0-9a-f]{7,64}\b")
_SUBJECT = re.compile(rb"\n    (\S[^\n]*+)")
_MATCH = re.compile(r"\n((?:[A-Za-z]:)?+[^:\n]*+):\d++[:-]")
_TAG = re.compile(rb"<([A-Za-z][\w:.-]{0,60})")
_DIVISIONS = b"Part|Book|Volume|Title|Chapter|Article|Section|Clause|Schedule|Appendix|Annex|Exhibit"
_CAPITALS = rb"[ \t]*[A-Z][A-Z0-9 ,&'/()-]{3,80}:?[ \t\r]*$"
_MARKED_HEADING = re.compile(rb"\n {0,3}(?:> ){0,3}(?:(#{1,6})[ \t]++[^\s#]|(```|~~~))")
"""Or the fence of an example, in which there are none."""
_OTHER_HEADING = compile_pattern(
    rb"(?m)^(?:[^\s#].{0,118}\n(?:={3,}|-{3,}|~{3,}|\^{3,})[ \t\r]*$"
    rb"|[ \t]*(?:(?:%b|%b)[ \t]+[\dIVXLC]+\b|\d+(?:\.\d+)*\.?[ \t]+[A-Z])[^.\n]{0,80}\.?[ \t\r]*$|%b)"
    % (_DIVISIONS, _DIVISIONS.upper(), _CAPITALS)
)
"""Underlined, numbered, or in capitals."""
_PAGE_HEADING = re.compile(rb"<[hH][1-6](?:\s[^<>]{0,400}+)?>")
_MAX_FENCED_BYTES = 16_384
"""A fence that is not closed within this is none."""
_SHOUTED = re.compile(_CAPITALS, re.MULTILINE)
_MARKUP = re.compile(r"<[^<>]{0,400}>")
_END_OF_HEADING = re.compile("</h[1-6]", re.IGNORECASE)
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]{0,39}", re.ASCII)
_MAX_CHARS_PER_TOKEN = 16
"""A longer text has too many tokens for certain, near enough, and is not counted."""
_NEXT_LINES = 60
_NEXT_CHARS = 4_000


def make_json_outline_card(found: Sequence[Value], *, is_whole: bool) -> Card | None:
    """`found`: the JSON documents in the output. Returns None if they have no structure."""
    levels, shapes = outline_levels(found), list[str]()

    def draft() -> Iterator[str]:
        """The shapes that were drafted before, and then the next ones."""
        yield from shapes
        for shape in levels:
            shapes.append("\n".join(f" {make_visible(line)}" for line in shape.split("\n")))
            yield shapes[-1]

    def fit(room: int, count: Count) -> list[str]:
        return list(islice((shape for shape in draft() if len(shape) <= _MAX_CHARS_PER_TOKEN * room and count(shape) <= room), 1))

    if next(draft(), None) is None:
        return None
    return Card(
        [Section("shape" if is_whole else "shape of what was read", fit=fit, rank=1)], [_suggest_member(open_raw(found[0]))]
    )


def _suggest_member(value: Value) -> NextStep:
    """The largest of the first members whose key is a plain name: it goes into a call."""
    members = islice(value.items() if is_object(value) else (), _MAX_COMPARED)
    sizes = {key: len(memoryview(member)) for key, member in members if isinstance(member, Raw)}
    largest = next(filter(_PLAIN_KEY.fullmatch, sorted(sizes, key=sizes.__getitem__, reverse=True)), None)
    if largest is None:
        return NextStep("query", "/0" if is_array(value) else "@", "what is in it")
    return NextStep("query", f"/{largest}", f"what is in {largest}")


def make_outline_card(sample: OutputSample, kind: Kind) -> tuple[Card, OutputSample]:
    """Also returns what was read."""
    if make := _MAKERS.get(kind.traits.layout):
        return make(sample, kind), sample
    part = sample.narrow_for_engine()
    index = build(part.data, kind=kind)
    if tables := read_engine_tables(index):
        return make_table_card(tables, is_whole=part.is_whole), part
    return _outline_text(sample, part, index), sample if kind.traits.layout in _FIND_HEADINGS else part


def _find(pattern: re.Pattern[bytes], data: bytes) -> list[int]:
    """The lines that begin so; the pattern begins with a line end."""
    return [found.start() for found in pattern.finditer(b"\n" + data)]


def _read_line(sample: OutputSample, start: int) -> str:
    end = sample.data.find(b"\n", start)
    return cut_line(decode(sample.data[start : min(start + 1_000, end if end >= 0 else len(sample.data))]))


def _outline_text(sample: OutputSample, part: OutputSample, index: Index) -> Card:
    """Prose, Markdown and web pages: how it begins, headings, tables."""
    find = _FIND_HEADINGS.get(index.traits.layout)
    read = sample if find else part
    found = list(find(sample.data) if find else _find_labels(index))
    headings = _list_headings(read, index, found)
    tables = [
        f"{part.locate(index.outline.starts[table.first])} {_describe_table(index, table)}"
        for table in index.outline.tables[:_MAX_LISTED]
    ]
    sections = [
        Section("begins", _list_opening(index), first=3, rank=1),
        *([Section(f"headings{read.where}", headings, len(found), 12, rank=2)] if headings else ()),
        *([Section(f"tables{part.where}", tables, len(index.outline.tables), 3, rank=3)] if tables else ()),
    ]
    return Card(sections, [_suggest_lines(read, [place for _, place in found[1:2]])])


def _read_opening(sample: OutputSample, kind: Kind) -> Index:
    return build(sample.narrow(((0, _OPENING_BYTES // 2),)).data, kind=kind)


def _list_opening(index: Index) -> list[str]:
    if not len(index.outline):
        return []
    start = index.outline.starts[0]
    end = min(index.total_bytes, start + _OPENING_BYTES)
    text = render(index, start, end)
    if end < index.total_bytes:  # without what may be half a character
        text = text[:-1] + ELLIPSIS
    return [line for line in indent(text, _MAX_PARAGRAPH_CHARS).split("\n") if line]


def _find_labels(index: Index) -> Iterator[Span]:
    """The depth and the position of each, as below."""
    outline, depths = index.outline, list[int]()
    for start, end, parent in zip(outline.label_starts, outline.label_ends, outline.label_parents, strict=True):
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
        if b"|" not in index.text[start:end]:
            yield depths[-1], start


def _find_headings(data: bytes) -> list[Span]:
    found, fenced = list[Span](), 0
    for mark in _MARKED_HEADING.finditer(b"\n" + data):
        start = mark.start()
        if mark[1] and start >= fenced:
            found.append((len(mark[1]), start))
        elif start >= fenced:
            fenced = data.find(b"\n" + mark[2], mark.end(), mark.end() + _MAX_FENCED_BYTES) + 4
    return found or list(_find_unmarked_headings(data))


def _find_unmarked_headings(data: bytes) -> Iterator[Span]:
    """Those in capitals only if they are no paragraph in capitals."""
    marks, shouted = dict[int, int](), -1
    for start, end in find_spans(_OTHER_HEADING, data, 0, len(data)):
        first, _, below = data[start:end].partition(b"\n")
        if below:
            if 2 * len(below) >= len(first) and data[max(0, start - 2) : start].strip(b"\r\n") == b"":
                yield marks.setdefault(below[0], len(marks)), start
        elif not first.isupper() or (shouted != start and not _SHOUTED.match(data, end + 1)):
            yield _MAX_HEADING_DEPTH, start
        shouted = end + 1 if first.isupper() else -1


def _find_page_headings(data: bytes) -> list[Span]:
    return [(data[found.start() + 2], found.start()) for found in _PAGE_HEADING.finditer(data)]


def _list_headings(sample: OutputSample, index: Index, found: list[Span]) -> list[str]:
    """Of too many, only those of the upper levels."""
    depths = sorted({depth for depth, _ in found})
    deepest = next(
        (depth for depth in reversed(depths) if sum(each <= depth for each, _ in found) <= _MAX_LISTED), min(depths, default=0)
    )
    lines: list[str] = []
    for depth, start in [each for each in found if each[0] <= deepest][:_MAX_LISTED]:
        text = _read_line(sample, start)
        if index.traits.layout == "page":
            markup = decode(sample.data[start : start + _MAX_PARAGRAPH_CHARS])
            text = " ".join(html.unescape(_MARKUP.sub(" ", _END_OF_HEADING.split(markup)[0])).split())
        if text := text.strip("#=> "):
            lines.append(
                f"{sample.locate(start)}{' ' * (1 + depths.index(depth))}{make_visible(shorten(text, _MAX_HEADING_CHARS))}"
            )
    return lines


_FIND_HEADINGS: dict[Layout, Callable[[bytes], Iterable[Span]]] = {"paragraphs": _find_headings, "page": _find_page_headings}


def _describe_table(index: Index, table: Table) -> str:
    names = [name(each) for each in read_columns(index, table)[:_MAX_TABLE_NAMES] if each.strip()]
    return f"{count_noun(table.last - table.first, 'row')}, columns {', '.join(names)}" if names else "without a header"


def _outline_code(sample: OutputSample, kind: Kind) -> Card:
    found = [start for start, _ in find_spans(_DEFINITION, sample.data, 0, len(sample.data))]
    if not found:
        return Card(
            [Section("begins", _list_opening(_read_opening(sample, kind)), first=3, rank=1)], [_suggest_lines(sample, [0])]
        )
    items = [f"{sample.locate(start)} {_read_line(sample, start)}" for start in found[:_MAX_LISTED]]
    title = count_noun(len(found), "definition") + sample.where
    return Card([Section(title, items, len(found), 10, rank=1)], [_suggest_lines(sample, found)])


def _outline_diff(sample: OutputSample, kind: Kind) -> Card:
    data, starts = sample.data, _find(_CHANGED_FILE, sample.data)
    items: list[str] = []
    for start, end in pairwise((*starts[: _MAX_LISTED + 1], *([len(data)] if len(starts) <= _MAX_LISTED else ()))):
        added, removed = (
            data.count(b"\n%b" % mark, start, end) - data.count(b"\n" + mark * 3 + b" ", start, end) for mark in (b"+", b"-")
        )
        items.append(f"{sample.locate(start)} +{added:,} -{removed:,} {_read_line(sample, start).removeprefix('diff --git ')}")
    sections = [
        Section(f"changes in {count_noun(len(starts), 'file')}{sample.where}", items, len(starts), 10, rank=1),
        Section("begins", _list_opening(_read_opening(sample, kind)), first=3, rank=2),
    ]
    return Card(sections, [_suggest_lines(sample, starts[:1])])


def _outline_matches(sample: OutputSample, kind: Kind) -> Card:
    text = decode(sample.data)
    lines = text.split("\n")
    paths = _MATCH.findall("\n" + text)
    if len(paths) < len(lines) - lines.count(""):  # lines around matches have hyphens
        paths = [found[0].rstrip(":-0123456789") for found in map(MATCH.match, lines) if found]
    files = Counter(paths)
    shown = [indent(line) for line in lines[:_MAX_LISTED] if line.strip()]
    items = [f"{times:,}× {cut_line(path)}" for path, times in files.most_common(_MAX_LISTED)]
    sections = [
        Section(f"matches in {count_noun(len(files), 'file')}{sample.where}, most first", items, len(files), 10, rank=1),
        Section("matches from the first on", shown, files.total() if sample.is_whole else 0, 2, rank=2),
    ]
    return Card(sections, [_suggest_lines(sample, [0])])


def _outline_history(sample: OutputSample, kind: Kind) -> Card:
    found = _find(_COMMIT, sample.data)
    items: list[str] = []
    for start in found[:_MAX_LISTED]:
        subject = _SUBJECT.search(sample.data, start, start + _OPENING_BYTES)
        title = decode(subject[1]) if subject else ""
        items.append(f"{sample.locate(start)} {cut_line(_read_line(sample, start).removeprefix('commit ')[:9] + ' ' + title)}")
    return Card(
        [Section(count_noun(len(found), "commit") + sample.where, items, len(found), 10, rank=1)], [_suggest_lines(sample, [0])]
    )


def _outline_xml(sample: OutputSample, kind: Kind) -> Card:
    tags = Counter(_TAG.findall(sample.data))
    items = [f"{times:,}× {name(decode(tag))}" for tag, times in tags.most_common(_MAX_LISTED)]
    sections = [
        Section(
            f"{count_noun(len(tags), 'kind')} of element{sample.where}, the most frequent first", items, len(tags), 10, rank=1
        ),
        Section("begins", _list_opening(_read_opening(sample, kind)), first=3, rank=2),
    ]
    return Card(sections, [_suggest_lines(sample, [0])])


def _suggest_lines(sample: OutputSample, starts: Sequence[int]) -> NextStep:
    place = sample.locate(starts[0] if starts else 0)
    if not place.startswith("L"):
        return NextStep("chars", str(_NEXT_CHARS), "what it is about, part by part")
    line = int(place[1:])
    return NextStep("lines", f"{line}-{line + _NEXT_LINES}", "what it is about, part by part")


_MAKERS: dict[Layout, Callable[[OutputSample, Kind], Card]] = {
    "definitions": _outline_code,
    "hunks": _outline_diff,
    "commits": _outline_history,
    "results": _outline_matches,
    "elements": _outline_xml,
}
