"""Writes the answer for a model: excerpts in document order with short locators, and a last line about what is missing."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from msgspec import Struct

from overspill.lexical.index import Index
from overspill.lexical.rank import Ranking
from overspill.text.encoding import decode
from overspill.text.humanize import shorten
from overspill.text.regex import regex

_SPACES = regex(r"[ \t\f]{2,}|\f")
_BLANK_LINES = regex(r"\n\s*\n+")
_CARRIAGE = regex(r"(?<!\r)\r++(?=\n)")
_KEY = regex(rb"\s*+\"((?:[^\"\\]++|\\.)*+)\"\s*+:")
_MAX_NUMBERED_LINE_BYTES = 5_000
"""If lines are longer on average, line numbers no longer help to locate anything."""
_MAX_POINTER_CHARS = 80
_MAX_HEADING_CHARS = 40
_MAX_CONTENTS_CHARS = 200
_MAX_NAMES = 12
_MAX_LABELS = 5_000
_QUESTION_CUT = "; the question is too long: not all of its words were looked for"


def render(index: Index, start: int, end: int) -> str:
    """The stored text without colours, tags and escapes."""
    text = decode(bytes(index.text[start:end]).translate(None, index.fill))
    if index.traits.is_markup:
        if "  " in text or "\t" in text or "\f" in text:
            text = _SPACES.sub(" ", text)
        if text.count("\n") > 1:
            text = _BLANK_LINES.sub("\n", text)
    return (_CARRIAGE.sub("", text) if "\r" in text else text).strip("\r\n")


def make_locator(index: Index, record: int, start: int) -> str:
    """A JSON pointer in JSON; otherwise a line, or a byte position if lines are too long, and the heading above it."""
    if index.traits.has_members and not index.is_partial:
        return _on_one_line(make_pointer(index, record), _MAX_POINTER_CHARS) or "/"
    place = f"@{start}" if index.total_bytes > _MAX_NUMBERED_LINE_BYTES * index.lines else f"L{index.line_at(start)}"
    outline = index.outline
    above = outline.under[record] if record >= 0 else -1
    if above < 0 or index.traits.is_celled or outline.label_ends[above] > start:
        return place
    span = outline.label_starts[above], outline.label_ends[above]
    if index.text.find(b"|", *span) >= 0:
        return place  # the header of a table
    heading = render(index, *span).strip("#= \t\n")
    return f"{place} {_on_one_line(heading, _MAX_HEADING_CHARS)}"


def make_pointer(index: Index, record: int) -> str:
    """The JSON pointer of a record, or of its container if the record is a run of plain members."""
    outline = index.outline
    lineage = outline.lineage(record)
    starts = [outline.label_starts[label] for label in lineage]
    steps = [_step(index, label, start) for label, start in zip(lineage[1:], starts, strict=False)]
    if bytes(index.text[outline.ends[record] - 1 : outline.ends[record]]) in (b"}", b"]"):
        outer = lineage[0] if lineage else -1
        steps.insert(0, _step(index, outer, outline.starts[record]))
    if lineage:
        steps.append(_step(index, -1, starts[-1]))
    return "".join("/" + step for step in reversed(steps) if step)


def _step(index: Index, container: int, start: int) -> str:
    """The step from a container to the member at `start`: its key, or its index in the array."""
    if key := _KEY.match(index.text, start):
        name = decode(key[1].replace(index.fill, b"") if index.fill else key[1])
        return name.replace("~", "~0").replace("/", "~1")
    outline = index.outline
    if container < 0 or index.text[outline.label_ends[container] - 1 : outline.label_ends[container]] == b'"':
        # At the root of the output, or of a document inside a string.
        return ""
    if container in outline.uncounted:
        return "*"
    return str(bisect_left(index.remember(_list_members, container), start))


def _list_members(index: Index, container: int) -> array[int]:
    """Where the records and the labels directly inside a container start. It contains at least one record."""
    outline = index.outline
    first = outline.record_from(outline.label_starts[container])
    last = min(first + outline.extents[container], len(outline)) - 1
    labels = range(container + 1, bisect_right(outline.label_starts, outline.starts[last]))
    members = [outline.label_starts[label] for label in labels if outline.label_parents[label] == container]
    members += [outline.starts[record] for record in range(first, last + 1) if outline.under[record] == container]
    return array("q", sorted(members))


class Shown(Struct, frozen=True):
    """What an answer shows: the number of matches and of other records, and what it leaves out."""

    matches: int
    others: int = 0
    shortened: bool = False
    has_noise: bool = False
    """Whether lines that only repeat each other were left out."""
    compared: int = 0
    """How many rows were compared, if there are more."""
    notes: tuple[str, ...] = ()
    """Notes on these rows."""


def write_closing_line(index: Index, ranking: Ranking, matched: int, shown: Shown) -> str:
    """The last line: how many matches it shows, what else it shows, and how to get the rest."""
    whole = shown.matches == matched and not ranking.more
    line = f"{_describe_matches(ranking, matched)}, {'all shown' if whole else f'showing {shown.matches}'}"
    if not matched:
        line = "no record matched by its words"
    if shown.others:
        line += f", with {shown.others} {'other' if shown.others == 1 else 'others'}"
    notes = {
        "; ask more precisely for the rest": not whole,
        "; some shortened": shown.shortened,
        "; repeated lines left out": whole and shown.has_noise,
        "; common words not counted": ranking.uncounted,
        _QUESTION_CUT: ranking.cut,
        f"; only {'' if index.is_partial else 'the first '}{shown.compared:,} rows compared": shown.compared,
        "".join(f"; {_on_one_line(note, _MAX_CONTENTS_CHARS)}" for note in shown.notes): True,
    }
    return f"({line}{''.join(note for note, is_true in notes.items() if is_true)})"


def describe_none_fits(ranking: Ranking, max_tokens: int) -> tuple[str, ...]:
    """Messages for a limit too small for any match, the longest first."""
    line = _describe_matches(ranking, len(ranking.matches)) + (_QUESTION_CUT if ranking.cut else "")
    return f"({line}, none fits into {max_tokens} tokens: ask for more)", f"({line}, none fits)", f"({line})"


def describe_nothing_found(index: Index, query: str, *, cut: bool) -> tuple[str, ...]:
    """Messages that nothing was found, with the contents of the output, the longest first."""
    first = f"Nothing found for: {_on_one_line(query, 120)}{_QUESTION_CUT if cut else ''}"
    size = f"{index.total_bytes} bytes" if index.is_partial else f"{index.total_bytes} bytes, {len(index.outline)} records"
    second = f"This output is {index.kind}, {size}: {_describe_contents(index)}"
    return f"{first}\n{second}", first, "Nothing found."


def _describe_matches(ranking: Ranking, matched: int) -> str:
    return f"matched {'more than ' if ranking.more else ''}{matched} {'record' if matched == 1 else 'records'}"


def _describe_contents(index: Index) -> str:
    """The outermost labels (keys, headings, columns), or the first record."""
    outline = index.outline
    outermost = [label for label, parent in enumerate(outline.label_parents[:_MAX_LABELS]) if parent < 0]
    if index.traits.has_members and len(outermost) == 1:
        outermost = [label for label, parent in enumerate(outline.label_parents[:_MAX_LABELS]) if parent == outermost[0]]
    names = [
        render(index, outline.label_starts[label], outline.label_ends[label]).strip('#"{[: \n')
        for label in outermost[:_MAX_NAMES]
    ]
    if any(names):
        return _on_one_line("; ".join(name for name in names if name), _MAX_CONTENTS_CHARS)
    return _on_one_line(render(index, outline.starts[0], outline.ends[0]), _MAX_CONTENTS_CHARS) if len(outline) else "empty"


def _on_one_line(text: str, limit: int) -> str:
    return shorten(" ".join(text.split()), limit)
