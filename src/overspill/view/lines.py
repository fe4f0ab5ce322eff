"""The lines of a window as HTML. Written here and not in a template, which would take most of the time that a window takes."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup, escape

from overspill.text.humanize import escape_invisible
from overspill.view.rendering import classify_line
from overspill.view.windows import Line, Window

_BEGAN = Markup('<span class="cut" title="The line began earlier">…</span>')
_GOES_ON = Markup('<span class="cut" title="The line goes on">…</span>')
_LINE = Markup(
    '<li id="b{start}" class="{kind}"><a class="no" href="#L{number}" aria-label="Line {number}">{number}</a>'
    '<span class="t">{text}</span></li>'
)
_MARKED = Markup("<mark>{}</mark>")


def show_lines(window: Window, kind: str) -> Markup:
    return Markup("\n").join(_show_line(line, kind) for line in window.lines)


def _show_line(line: Line, kind: str) -> Markup:
    named = classify_line(kind, line.text) + (" marked" if line.is_marked else "")
    return _LINE.format(start=line.start, kind=named, number=line.number, text=Markup().join(_show_pieces(line)))


def _show_pieces(line: Line) -> Iterator[Markup]:
    if line.is_continued:
        yield _BEGAN
    for piece in line.pieces:
        text = escape(escape_invisible(piece.text))
        yield _MARKED.format(text) if piece.is_marked else text
    if line.continues:
        yield _GOES_ON
