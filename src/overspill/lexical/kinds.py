"""Recognises the kind of a text from samples. Never fails: unrecognised text counts as lines or prose."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable

from overspill.lexical.outline import Kind, Text
from overspill.lexical.reading import NEVER_IN_UTF8
from overspill.text.encoding import decode

_SAMPLE_BYTES = 48_000
_MAX_LINE_CHARS = 400
"""The rest of a line is ignored: a line that begins like a log entry is one."""

_JSON = re.compile(
    rb"\s*+(?:\{\s*+(?:\"(?:[^\"\\]++|\\.)*+\"\s*+:|\})"
    rb"|\[\s*+(?:[\[{\]\"]|(?:-?\d[\d.eE+-]*+|true|false|null)\s*+(?:,|\][^\S\n]*+(?:[,\]\n]|\Z))))"
)
_NEXT_OBJECT = re.compile(rb"[}\]][^\S\n]*+\n\s*+[{\[]")
_TAG = re.compile(rb"<(?:t[drh]|p|div|a|li|ul|span|table|br|h[1-6]|b|i|body|head|meta)(?:[\s/][^<>]{0,400})?>", re.IGNORECASE)
_DOCTYPE = re.compile(rb"\s*+(?:<!--.*?-->\s*+)*+<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)
_XML = re.compile(rb"\s*+(?:<\?xml\b|<[A-Za-z][\w:.-]*+(?:\s[^<>]*+)?>)")
_CLOSED = re.compile(rb"</[A-Za-z][\w:.-]*>|/>")

_DIFF = re.compile(r"(?:diff --git |@@ -\d|--- \S|\+\+\+ \S|Index: )")
_MATCH = re.compile(
    r"(?:[A-Za-z]:)?(?:[^\WA-Za-z]|[.@+~-])*+[A-Za-z/\\](?:[\w./\\@+~]|-(?!\d++[:-]))*+[:-]\d++[:-]",
)
"""A path, which contains a letter or a slash, then a line number."""
_STAMP = re.compile(
    r"\W{0,3}(?:\[\s*+\d++\.\d++\]|\S{0,24}?\d{2,4}[-/.]\d{1,2}[-/.]\d{1,4}|\S{0,12}?\d{1,2}:\d{2}:\d{2}|[A-Z][a-z]{2}\s++\d{1,2}\s|\d{10,13}\b"
    r"|\S++ - \S++ \[\d|(?=[a-f]*+\d)[0-9a-f]{7,40} \S)"
)
HISTORY = re.compile(rb"commit [0-9a-f]{7,64}\b")
"""How `git log` begins a commit."""
_LEVEL = re.compile(r"\W{0,3}(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)\b")
_CODE = re.compile(
    r"\s*+(?:(?:async |export |default |public |private |protected |static |final |abstract |pub(?:\(\w+\))? |unsafe |override )*"
    r"(?:def|class|import|from|function|const|let|var|package|func|fn|use|return|if|else|elif|for|while|try|except|catch|with|struct|impl|enum"
    r"|trait|interface|type|namespace|using|void|int|bool|string|case|switch|match|public|private|static|resource|variable|module|provider)\b"
    r"|#include|@\w+|\}|//|/\*|\*)|.*[;{]\s*+$|\s++[\w.\"\[\]]++\s*+(?:=|\+=|:=)\s|\s++[\w.]++\("
)
_YAML = re.compile(r"\s*+(?:- )?[\w./\"'-]++:(?:\s|$)|\s*+- \S|\s*+#|---$")
_WORD = re.compile(r"[(“\"'*_`]{0,3}[A-Za-z][a-z]*[,.;:!?)”\"'*_`]{0,3}$")
_MIN_PROSE_LINE_CHARS = 50
"""The average length of a line of running text, even if it is wrapped."""
_MIN_PROSE_WORD_SHARE = 0.68
"""Share of plain words among the tokens: contracts and articles have 0.7 to 0.95, logs below 0.65."""
_HEADING = re.compile(r"#{1,6} \S")
_GAPS = re.compile(r"\S(?: {2,}|\t+)(?=\S)")
_RULE = re.compile(r"[\s|+=-]{4,}$")
_TABLE_RULE = re.compile(r"\|(?:\s*+:?-++:?\s*+\|)++\s*+$")


def recognise(data: Text, start: int = 0, end: int | None = None) -> Kind:
    stop = len(data) if end is None else end
    head = _sample(data, start, stop)
    if shape := _recognise_by_opening(head):
        return shape
    if HISTORY.match(head):
        return "log"
    middle = start + (stop - start) // 2
    lines = _lines(head)
    if stop - start > 3 * _SAMPLE_BYTES:
        lines += _lines(_sample(data, middle, stop))[1:-1]
    return _recognise_by_lines(lines) if lines else "prose"


def _sample(data: Text, start: int, end: int) -> bytes:
    """A sample without the filler bytes of a reading."""
    return bytes(data[start : min(end, start + _SAMPLE_BYTES)]).translate(None, bytes(NEVER_IN_UTF8))


def find_delimiter(lines: list[str]) -> str:
    """The character that splits these lines into the same number of cells, or an empty string."""
    best, width = "", 1
    for mark in ",\t;|":
        rows = [row for row in _rows(lines[:400], mark) if row]
        if len(rows) < 3:
            continue
        cells, times = Counter(map(len, rows)).most_common(1)[0]
        if cells > width and times >= 0.85 * len(rows) and len(rows[0]) == cells and _looks_tabular(rows, mark):
            best, width = mark, cells
    return best


def _rows(lines: list[str], mark: str) -> Iterable[list[str]]:
    try:
        return list(csv.reader((line + "\n" for line in lines), delimiter=mark))[:-1]
    except csv.Error:
        return []


def _looks_tabular(rows: list[list[str]], mark: str) -> bool:
    """Commas also separate clauses, and semicolons end statements; in a table, header cells are short and cells are filled."""
    widest = max(len(cell) for cell in rows[0])
    spaced = sum(row[1][:1] == " " for row in rows if len(row) > 1) if mark == "," else 0
    filled = sum(any(row[1:]) for row in rows)
    return widest <= 60 and spaced < 0.5 * len(rows) and filled > 0.5 * len(rows)


def _recognise_by_opening(head: bytes) -> Kind | None:
    if _JSON.match(head):
        first_end = _NEXT_OBJECT.search(head)
        opening = head.find(b"\n")
        return "ndjson" if first_end and opening >= 0 and first_end.start() <= opening else "json"
    if head.lstrip()[:5] == b"<?xml" and b"<html" not in head[:2_000]:
        return "xml"
    if _DOCTYPE.match(head) or len(_TAG.findall(head)) * 700 > len(head) > 0:
        return "html"
    if _XML.match(head) and len(_CLOSED.findall(head)) * 1000 > len(head):
        return "xml"
    return None


def _lines(sample: bytes) -> list[str]:
    return [line for line in decode(sample).splitlines() if line.strip()][:800]


def _recognise_by_lines(whole_lines: list[str]) -> Kind:
    lines = [line[:_MAX_LINE_CHARS] for line in whole_lines]

    def share(match: Callable[[str], object]) -> float:
        return sum(match(line) is not None for line in lines) / len(lines)

    if sum(bool(_DIFF.match(line)) for line in lines) >= 2 and sum(line[:1] in "+- @" for line in lines) > 0.7 * len(lines):
        return "diff"
    stamped = share(_STAMP.match) + share(_LEVEL.match)
    if len(lines) > 2 and not _STAMP.match(lines[0]) and find_delimiter(whole_lines):
        return "csv"
    if stamped > 0.3:
        return "log"
    if share(_MATCH.match) > 0.6:
        return "matches"
    tokens = [token for line in lines for token in line.split()]
    wordy = sum(_WORD.match(token) is not None for token in tokens) / max(1, len(tokens))
    aligned = sum(len(_GAPS.findall(line)) >= 2 for line in lines) + sum(_RULE.match(line) is not None for line in lines)
    if aligned > 0.7 * len(lines) and (
        wordy < _MIN_PROSE_WORD_SHARE or (lines[0].isupper() and len(_GAPS.findall(lines[0])) >= 2)
    ):
        return "columns"
    if share(_YAML.match) > 0.7 or share(_CODE.match) > (0.45 if wordy < _MIN_PROSE_WORD_SHARE else 0.65):
        return "code"
    if any("\x1b[" in line for line in lines):
        return "log"
    long_lines = sum(map(len, lines)) >= _MIN_PROSE_LINE_CHARS * len(lines)
    return "prose" if (wordy >= _MIN_PROSE_WORD_SHARE and long_lines) or _is_markdown(lines) else "log"


def _is_markdown(lines: list[str]) -> bool:
    headings = sum(_HEADING.match(line) is not None for line in lines)
    ruled = any(_TABLE_RULE.match(line) for line in lines) and sum(line[:1] == "|" for line in lines) > 0.3 * len(lines)
    return ruled or (headings >= 2 and headings > 0.02 * len(lines))
