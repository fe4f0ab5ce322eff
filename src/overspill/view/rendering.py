"""Renders the text in a stored output for people, by its kind: JSON as a tree, rows as a table, Markdown as a page, marks for
diffs and logs. The lines of a window are written here, because a template would take most of a window's time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, cast

import msgspec
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from msgspec import Struct
from msgspec.structs import replace

from overspill.errors import NotText, OverspillError
from overspill.lexical.kinds import recognise
from overspill.lexical.kinds.kind import Kind, Layout
from overspill.reading.positions import View
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.views import describe_gaps
from overspill.store.protocols import Reader
from overspill.tables.delimited import find_delimited, take_heading
from overspill.tables.table import write_note
from overspill.text.encoding import decode
from overspill.text.humanize import escape_invisible, shorten
from overspill.text.regex import Pattern, regex
from overspill.view.windows import Line, TextWindow

_STRINGS_NUMBERS_WORDS = r"|(?P<s>\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|`[^`]*`?)|(?P<n>\d[\w.]*)|(?P<w>[^\W\d]\w*)"
_WITH_HASHES = regex(r"(?P<c>\#.*)" + _STRINGS_NUMBERS_WORDS)
_WITH_SLASHES = regex(r"(?P<c>//.*|/\*.*?(?:\*/|$))" + _STRINGS_NUMBERS_WORDS)
_ENDS = (";", "{", "}", "},", "*/")
"""How lines end in languages whose comments begin with slashes."""
_MIN_SHARE = 4
"""More than one line in this many must end like that."""
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
_LEVEL = regex(r"\b(?:(fatal|critical|error|severe|panic)|warn(?:ing)?)\b")
_BEGAN = '<span class="cut" title="The line began earlier">…</span>'
_GOES_ON = '<span class="cut" title="The line continues">…</span>'
_SAMPLE_BYTES = 256 << 10
Form: TypeAlias = Literal["tree", "table", "page", ""]
MAX_RENDERED_BYTES = 256 << 10
"""The size of an output's beginning that is rendered. All that follows is shown as text."""
MAX_NODES = 3_000
MAX_ROWS = 500
MAX_COLUMNS = 60
MAX_CELL_CHARS = 300
_MAX_DEPTH = 60
_HEADING = regex(r"(?m)^#{1,6} \S")
_NO_TREE = "It is too large or not well formed enough for a tree. Ask with a JSON pointer or JMESPath."


class ShownText(Struct, frozen=True):
    """The stored bytes themselves, or the text decoded from them."""

    reader: Reader
    view: View
    notes: tuple[str, ...] = ()
    is_text: bool = True
    """If False, the bytes themselves are shown."""

    @property
    def kind(self) -> Kind:
        """The kind of text that the engine recognises by its beginning."""
        return recognise(self.reader.read(0, _SAMPLE_BYTES))


def open_text(stored: StoredOutput) -> ShownText:
    """Decode a stored output for showing. If it is damaged, shows what is left of it."""
    is_text = stored.kept.media == "text"
    if stored.damage:
        return ShownText(stored.reader, stored.view, is_text=is_text)
    try:
        text = stored.decoded()
    except NotText as problem:
        return ShownText(stored.reader, stored.view, (str(problem),), is_text=False)
    except OverspillError as problem:
        return ShownText(stored.reader, stored.view, (str(problem),), is_text=is_text)
    return ShownText(text.reader, text.positions, tuple(describe_gaps(stored.kept, text)))


class RenderedNode(Struct, frozen=True):
    """A value of a JSON document. `children` is None for one that has no parts."""

    key: str
    value: str = ""
    children: tuple[RenderedNode, ...] | None = None


class Rendered(Struct, frozen=True):
    form: Form
    tree: RenderedNode | None = None
    above: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    page: Markup = Markup()
    note: str = ""


def find_form(layout: Layout, text: ShownText) -> Form:
    """Return how text of this layout can be rendered; empty if it can be rendered only as lines."""
    if layout in ("document", "documents"):
        return "tree"
    if layout == "rows":
        return "table"
    is_page = layout == "paragraphs" and _HEADING.search(decode(text.reader.read(0, 16 << 10)))
    return "page" if is_page else ""


def render(text: ShownText) -> Rendered:
    layout = text.kind.traits.layout
    form = find_form(layout, text)
    data = text.reader.read(0, MAX_RENDERED_BYTES)
    left = text.view.bytes - len(data)
    note = f"Only the first {len(data):,} of {text.view.bytes:,} bytes are rendered. The rest is in the text." if left else ""
    match form:
        case "tree":
            return _render_json(layout, data, note)
        case "table":
            return _render_table(data, note)
        case "page":
            return Rendered("page", page=render_markdown(decode(data)), note=note)
        case "":
            return Rendered("")


def render_markdown(text: str) -> Markup:
    """Render Markdown without HTML, links and images: link targets are shown as text, and nothing is loaded."""
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": 20}).enable("table")
    parser.disable(["link", "image", "autolink", "reference", "html_block", "html_inline"])
    return Markup(parser.render(escape_invisible(text)))  # noqa: S704  # the parser escapes everything it does not make itself


def _render_json(layout: Layout, data: bytes, note: str) -> Rendered:
    try:
        if layout == "documents":
            lines = data.splitlines() if not note else data.splitlines()[:-1]
            value: Any = [msgspec.json.decode(line) for line in lines[:MAX_NODES] if line.strip()]
        else:
            value = msgspec.json.decode(data)
        budget = [MAX_NODES]
        tree = _make_node("", value, budget, 0)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Rendered("", note=_NO_TREE)
    if budget[0] <= 0:
        note = f"The tree shows its first {MAX_NODES:,} values. Ask with a JSON pointer or JMESPath for others."
    return Rendered("tree", tree=tree, note=note)


def _make_node(key: str, value: Any, budget: list[int], depth: int) -> RenderedNode:
    budget[0] -= 1
    key = shorten(key, MAX_CELL_CHARS)
    if not isinstance(value, dict | list) or depth >= _MAX_DEPTH:
        return RenderedNode(key, shorten(decode(msgspec.json.encode(value)), MAX_CELL_CHARS * 4))
    parts = cast("dict[str, Any] | list[Any]", value)
    items = parts.items() if isinstance(parts, dict) else enumerate(parts)
    children = tuple(_make_node(str(name), inner, budget, depth + 1) for name, inner in items if budget[0] > 0)
    return RenderedNode(key, f"{{{len(parts)}}}" if isinstance(parts, dict) else f"[{len(parts)}]", children)


def _render_table(data: bytes, note: str) -> Rendered:
    heading = take_heading(data)
    split, names = heading.format.split, heading.format.names
    found = find_delimited(data, replace(heading, above=()), len(data))
    spans = list(zip(found.starts, found.ends, strict=True))[: -1 if note else None]
    note = " ".join(filter(None, (note, write_note(found.omissions))))
    if len(spans) > MAX_ROWS or len(names) > MAX_COLUMNS:
        columns = f"{min(MAX_COLUMNS, len(names)):,} of {len(names):,} columns"
        note = f"The table shows its first {min(MAX_ROWS, len(spans)):,} rows and {columns}. {note}".strip()
    return Rendered(
        "table",
        above=tuple(_shorten(decode(data[start:end]).strip()) for start, end in heading.above),
        names=tuple(map(_shorten, names[:MAX_COLUMNS])) if heading.header else (),
        rows=tuple(tuple(map(_shorten, split(decode(data[start:end]))[:MAX_COLUMNS])) for start, end in spans[:MAX_ROWS]),
        note=note,
    )


def _shorten(cell: str) -> str:
    return shorten(cell.replace("\0", ""), MAX_CELL_CHARS)


def find_comments(lines: Sequence[str]) -> Pattern[str]:
    """Guess how comments begin in these lines of a program, and return the pattern that colors them."""
    count = sum(line.rstrip().endswith(_ENDS) for line in lines)
    return _WITH_SLASHES if count * _MIN_SHARE > len(lines) else _WITH_HASHES


def color_code(pattern: Pattern[str], text: str) -> str:
    """Return the text as colored HTML, in which all text is escaped."""
    pieces, at = list[str](), 0
    for found in pattern.finditer(text):
        kind = found.lastgroup
        if kind == "w" and found[0] not in _KNOWN:
            continue
        pieces += (escape(text[at : found.start()]), f'<span class="code-{kind}">{escape(found[0])}</span>')
        at = found.end()
    return "".join([*pieces, escape(text[at:])])


def show_lines(window: TextWindow, layout: Layout) -> Markup:
    show = partial(color_code, find_comments([line.text for line in window.lines])) if layout == "definitions" else escape
    return Markup("\n".join(_show_line(line, layout, show) for line in window.lines))  # noqa: S704  # all text in it is escaped below


def _show_line(line: Line, layout: Layout, show: Callable[[str], str]) -> str:
    named = {"+": "add", "-": "del", "@": "hunk"}.get(line.text[:1], "") if layout == "hunks" else ""
    head = line.text[:200].lower() if layout == "events" else ""
    # Look for the words first: most lines have none, and the pattern takes much longer to find that out.
    if any(word in head for word in _LEVELS) and (found := _LEVEL.search(head)):
        named = "level-error" if found[1] else "level-warn"
    named += " marked" if line.is_marked else ""
    texts = [(piece, show(escape_invisible(piece.text))) for piece in line.pieces]
    text = "".join(f"<mark>{shown}</mark>" if piece.is_marked else shown for piece, shown in texts)
    began, goes_on = _BEGAN if line.is_continued else "", _GOES_ON if line.continues else ""
    link = f'<a class="no" href="#L{line.number}" aria-label="Line {line.number}">{line.number}</a>'
    return f'<li id="b{line.start}" class="{named}">{link}<span class="t">{began}{text}{goes_on}</span></li>'
