"""The lines of a window as HTML. Written here and not in a template, which would take most of the time that a window takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from markupsafe import Markup, escape
from msgspec import Struct

from overspill.lexical.kinds.kind import Layout
from overspill.store.protocols import Reader
from overspill.text.humanize import escape_invisible
from overspill.view.windows import Line, TextWindow

_STRINGS_NUMBERS_WORDS = r"|(?P<s>\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|`[^`]*`?)|(?P<n>\d[\w.]*)|(?P<w>[^\W\d]\w*)"
_WITH_HASHES = re.compile(r"(?P<c>\#.*)" + _STRINGS_NUMBERS_WORDS)
_WITH_SLASHES = re.compile(r"(?P<c>//.*|/\*.*?(?:\*/|$))" + _STRINGS_NUMBERS_WORDS)
_ENDS = (";", "{", "}", "},", "*/")
"""How lines end in languages whose comments begin with slashes."""
_MIN_SHARE = 4
"""One line in so many has to end like that."""
_WORDS = """
abstract and as assert async await break case catch class const continue def default defer del delete do elif else end
enum except export extends extern False false final finally fn for foreach from func function global go goto if impl
implements import in include inline instanceof interface is lambda let loop match module mut namespace new nil None
nonlocal not null or override package pass private protected pub public raise require return select self static struct
super switch this throw throws trait true True try type typeof undefined union unsafe use using var virtual void
volatile where while with yield
"""
_KNOWN = frozenset(_WORDS.split())
_LEVELS = ("fatal", "critical", "error", "severe", "panic", "warn")
_LEVEL = re.compile(r"\b(?:(fatal|critical|error|severe|panic)|warn(?:ing)?)\b")
_LEVEL_CHARS = 200


def find_comments(lines: Sequence[str]) -> re.Pattern[str]:
    """The pattern for these lines of one program, by how its comments begin."""
    count = sum(line.rstrip().endswith(_ENDS) for line in lines)
    return _WITH_SLASHES if count * _MIN_SHARE > len(lines) else _WITH_HASHES


def color_code(pattern: re.Pattern[str], text: str) -> str:
    """The text as HTML, all of it escaped."""
    pieces, at = list[str](), 0
    for found in pattern.finditer(text):
        kind = found.lastgroup
        if kind == "w" and found[0] not in _KNOWN:
            continue
        pieces += (escape(text[at : found.start()]), f'<span class="code-{kind}">{escape(found[0])}</span>')
        at = found.end()
    return "".join([*pieces, escape(text[at:])])


_BEGAN = '<span class="cut" title="The line began earlier">…</span>'
_GOES_ON = '<span class="cut" title="The line goes on">…</span>'


def _classify_line(layout: Layout, line: str) -> str:
    """The class of a line of a diff or a log."""
    if layout == "hunks":
        return {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "")
    head = line[:_LEVEL_CHARS].lower() if layout == "events" else ""
    # Most lines have none of the words, and a pattern takes much longer to find that out.
    if any(word in head for word in _LEVELS) and (found := _LEVEL.search(head)):
        return "level-error" if found[1] else "level-warn"
    return ""


def show_lines(window: TextWindow, layout: Layout) -> Markup:
    show = partial(color_code, find_comments([line.text for line in window.lines])) if layout == "definitions" else escape
    return Markup("\n".join(_show_line(line, layout, show) for line in window.lines))  # noqa: S704  # all text in it is escaped below


def _show_line(line: Line, layout: Layout, show: Callable[[str], str]) -> str:
    named = _classify_line(layout, line.text) + (" marked" if line.is_marked else "")
    texts = [(piece, show(escape_invisible(piece.text))) for piece in line.pieces]
    text = "".join(f"<mark>{shown}</mark>" if piece.is_marked else shown for piece, shown in texts)
    began, goes_on = _BEGAN if line.is_continued else "", _GOES_ON if line.continues else ""
    link = f'<a class="no" href="#L{line.number}" aria-label="Line {line.number}">{line.number}</a>'
    return f'<li id="b{line.start}" class="{named}">{link}<span class="t">{began}{text}{goes_on}</span></li>'


ROW_BYTES = 16
WINDOW_ROWS = 256
_WINDOW = ROW_BYTES * WINDOW_ROWS


class HexRow(Struct, frozen=True):
    start: int
    hexadecimal: str
    characters: str


class HexRows(Struct, frozen=True):
    rows: tuple[HexRow, ...]
    start: int
    total: int
    before: int | None
    after: int | None


def make_hex_rows(reader: Reader, start: int) -> HexRows:
    """The window with this byte. A place past the end gives the last window."""
    total = reader.size
    start = min(max(start, 0), max(total - 1, 0)) // _WINDOW * _WINDOW
    data = reader.read(start, start + _WINDOW)
    characters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
    rows = tuple(
        HexRow(start + at, data[at : at + ROW_BYTES].hex(" "), characters[at : at + ROW_BYTES])
        for at in range(0, len(data), ROW_BYTES)
    )
    end = start + len(data)
    return HexRows(rows, start, total, max(0, start - _WINDOW) if start else None, end if end < total else None)
