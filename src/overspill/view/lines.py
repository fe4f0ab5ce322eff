"""The lines of a window as HTML. Written here and not in a template, which would take most of the time that a window takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from markupsafe import Markup, escape

from overspill.lexical.kinds.kind import Layout
from overspill.text.humanize import escape_invisible
from overspill.view.code import color_code, find_comments
from overspill.view.rendering import classify_line
from overspill.view.windows import Line, TextWindow

_BEGAN = '<span class="cut" title="The line began earlier">…</span>'
_GOES_ON = '<span class="cut" title="The line goes on">…</span>'


def show_lines(window: TextWindow, layout: Layout) -> Markup:
    show = partial(color_code, find_comments([line.text for line in window.lines])) if layout == "definitions" else escape
    return Markup("\n".join(_show_line(line, layout, show) for line in window.lines))  # noqa: S704  # all text in it is escaped below


def _show_line(line: Line, layout: Layout, show: Callable[[str], str]) -> str:
    named = classify_line(layout, line.text) + (" marked" if line.is_marked else "")
    number, text = line.number, "".join(_show_pieces(line, show))
    link = f'<a class="no" href="#L{number}" aria-label="Line {number}">{number}</a>'
    return f'<li id="b{line.start}" class="{named}">{link}<span class="t">{text}</span></li>'


def _show_pieces(line: Line, show: Callable[[str], str]) -> Iterator[str]:
    if line.is_continued:
        yield _BEGAN
    for piece in line.pieces:
        text = show(escape_invisible(piece.text))
        yield f"<mark>{text}</mark>" if piece.is_marked else text
    if line.continues:
        yield _GOES_ON
