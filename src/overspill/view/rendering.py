"""The text in a stored output, as far as there is any, rendered for people by its kind: JSON as a tree, rows as a table, Markdown
as a page, marks for diffs and logs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias, cast

import msgspec
from markdown_it import MarkdownIt
from markupsafe import Markup
from msgspec import Struct

from overspill.errors import NotText, OverspillError
from overspill.lexical.kinds import recognise
from overspill.lexical.kinds.kind import Kind, Layout
from overspill.reading.positions import View
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.views import describe_gaps
from overspill.store.protocols import Reader
from overspill.tables.delimited import iterate_rows, take_heading
from overspill.text.encoding import decode
from overspill.text.humanize import escape_invisible, shorten

_SAMPLE_BYTES = 256 << 10
Form: TypeAlias = Literal["tree", "table", "page", ""]
MAX_RENDERED_BYTES = 256 << 10
"""Of the beginning of an output. The rest is shown as text."""
MAX_NODES = 3_000
MAX_ROWS = 500
MAX_COLUMNS = 60
MAX_CELL_CHARS = 300
_MAX_DEPTH = 60
_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)
_NO_TREE = "It is too large or not well formed enough for a tree. Ask with a JSON pointer or JMESPath."


class ShownText(Struct, frozen=True):
    """The stored bytes themselves, or what was decoded from them."""

    reader: Reader
    view: View
    notes: tuple[str, ...] = ()
    is_text: bool = True
    """False if there is none: then the bytes themselves are shown."""
    is_decoded: bool = False
    """Whether positions are those of the decoded text, and not of the stored bytes."""

    @property
    def kind(self) -> Kind:
        """What the engine takes it for, by its beginning."""
        return recognise(self.reader.read(0, _SAMPLE_BYTES))


def open_text(stored: StoredOutput) -> ShownText:
    """A damaged output is shown too, as far as it is there."""
    is_text = stored.kept.media == "text"
    if stored.damage:
        return ShownText(stored.reader, stored.view, is_text=is_text)
    try:
        text = stored.decoded()
    except NotText as problem:
        return ShownText(stored.reader, stored.view, (str(problem),), is_text=False)
    except OverspillError as problem:
        return ShownText(stored.reader, stored.view, (str(problem),), is_text=is_text)
    is_decoded = text.decoding is not None and bool(text.decoding.formats)
    return ShownText(text.reader, text.positions, tuple(describe_gaps(stored.kept, text)), is_decoded=is_decoded)


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
