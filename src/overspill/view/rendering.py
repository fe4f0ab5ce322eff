"""Stored text rendered for people by its kind: JSON as a tree, rows as a table, Markdown as a page, marks for diffs and logs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias, cast

import msgspec
from markdown_it import MarkdownIt
from markupsafe import Markup
from msgspec import Struct

from overspill.lexical.kinds.kind import Layout
from overspill.tables.delimited import iterate_rows, take_heading
from overspill.text.encoding import decode
from overspill.text.humanize import escape_invisible, shorten
from overspill.view.texts import ShownText

Form: TypeAlias = Literal["tree", "table", "page", ""]
MAX_RENDERED_BYTES = 256 << 10
"""Of the beginning of an output. The rest is shown as text."""
MAX_NODES = 3_000
MAX_ROWS = 500
MAX_COLUMNS = 60
MAX_CELL_CHARS = 300
_MAX_DEPTH = 60
_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)
_LEVELS = ("fatal", "critical", "error", "severe", "panic", "warn")
_LEVEL = re.compile(r"\b(?:(fatal|critical|error|severe|panic)|warn(?:ing)?)\b")
_LEVEL_CHARS = 200
_NO_TREE = "It is too large or not well formed enough for a tree. Ask with a JSON pointer or JMESPath."


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
    """How text of this layout can be rendered; empty if only as lines."""
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


def classify_line(layout: Layout, line: str) -> str:
    """The class of a line of a diff or a log."""
    if layout == "hunks":
        return {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "")
    head = line[:_LEVEL_CHARS].lower() if layout == "events" else ""
    # Most lines have none of the words, and a pattern takes much longer to find that out.
    if any(word in head for word in _LEVELS) and (found := _LEVEL.search(head)):
        return "level-error" if found[1] else "level-warn"
    return ""


def render_markdown(text: str) -> Markup:
    """Without HTML, links and images of its own: what it links to is shown as text, and nothing is loaded."""
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": 20}).enable("table")
    parser.disable(["link", "image", "autolink", "reference", "html_block", "html_inline"])
    return Markup(parser.render(escape_invisible(text)))  # noqa: S704  # the parser escapes whatever it does not make itself


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
    if isinstance(value, dict) and depth < _MAX_DEPTH:
        members = cast("dict[str, Any]", value)
        return RenderedNode(key, f"{{{len(members)}}}", tuple(_children(members.items(), budget, depth)))
    if isinstance(value, list) and depth < _MAX_DEPTH:
        items = cast("list[Any]", value)
        return RenderedNode(key, f"[{len(items)}]", tuple(_children(enumerate(items), budget, depth)))
    return RenderedNode(key, shorten(decode(msgspec.json.encode(value)), MAX_CELL_CHARS * 4))


def _children(items: Iterable[tuple[str | int, Any]], budget: list[int], depth: int) -> Iterator[RenderedNode]:
    for key, value in items:
        if budget[0] <= 0:
            return
        yield _make_node(str(key), value, budget, depth + 1)


def _render_table(data: bytes, note: str) -> Rendered:
    heading = take_heading(data)
    split, names = heading.format.split, heading.format.names
    spans = list(iterate_rows(data, heading.format.mark, heading.first, len(data)))[: -1 if note else None]
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
